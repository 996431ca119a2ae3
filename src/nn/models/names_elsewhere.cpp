#include "nn/models/names_elsewhere.hpp"

#include "base/number.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace lockstep::nn {

namespace {

/// A parameter of ours, without ".weight" or ".bias", and its name in each of the others; empty:
/// they have none. "#" stands for the number of a block, which others count from 0. A name that
/// ends with "_" continues with "weight" or "bias".
struct Row {
    std::string_view ours;
    std::string_view gpt2; ///< products are stored transposed
    int part = 0;          ///< of one product of queries, keys and values
    std::string_view llama;
    std::string_view vit;
    std::string_view later_vit = {}; ///< of release 5 on
    std::string_view timm = {};
    std::string_view torchvision = {};
};

constexpr std::array rows{
    Row{"embedding", "wte", 0, "model.embed_tokens", ""},
    Row{"positions", "wpe", 0, "", "vit.embeddings.position_embeddings", "", "pos_embed",
        "encoder.pos_embedding"},
    Row{"class_token", "", 0, "", "vit.embeddings.cls_token", "", "cls_token", "class_token"},
    Row{"patches", "", 0, "", "vit.embeddings.patch_embeddings.projection", "", "patch_embed.proj",
        "conv_proj"},
    Row{"blocks.block#.attention_norm", "h.#.ln_1", 0, "model.layers.#.input_layernorm",
        "vit.encoder.layer.#.layernorm_before", "vit.layers.#.layernorm_before", "blocks.#.norm1",
        "encoder.layers.encoder_layer_#.ln_1"},
    Row{"blocks.block#.query", "h.#.attn.c_attn", 0, "model.layers.#.self_attn.q_proj",
        "vit.encoder.layer.#.attention.attention.query", "vit.layers.#.attention.q_proj",
        "blocks.#.attn.qkv", "encoder.layers.encoder_layer_#.self_attention.in_proj_"},
    Row{"blocks.block#.key", "h.#.attn.c_attn", 1, "model.layers.#.self_attn.k_proj",
        "vit.encoder.layer.#.attention.attention.key", "vit.layers.#.attention.k_proj",
        "blocks.#.attn.qkv", "encoder.layers.encoder_layer_#.self_attention.in_proj_"},
    Row{"blocks.block#.value", "h.#.attn.c_attn", 2, "model.layers.#.self_attn.v_proj",
        "vit.encoder.layer.#.attention.attention.value", "vit.layers.#.attention.v_proj",
        "blocks.#.attn.qkv", "encoder.layers.encoder_layer_#.self_attention.in_proj_"},
    Row{"blocks.block#.output", "h.#.attn.c_proj", 0, "model.layers.#.self_attn.o_proj",
        "vit.encoder.layer.#.attention.output.dense", "vit.layers.#.attention.o_proj",
        "blocks.#.attn.proj", "encoder.layers.encoder_layer_#.self_attention.out_proj"},
    Row{"blocks.block#.feed_forward_norm", "h.#.ln_2", 0, "model.layers.#.post_attention_layernorm",
        "vit.encoder.layer.#.layernorm_after", "vit.layers.#.layernorm_after", "blocks.#.norm2",
        "encoder.layers.encoder_layer_#.ln_2"},
    Row{"blocks.block#.gate", "", 0, "model.layers.#.mlp.gate_proj", ""},
    Row{"blocks.block#.up", "h.#.mlp.c_fc", 0, "model.layers.#.mlp.up_proj",
        "vit.encoder.layer.#.intermediate.dense", "vit.layers.#.mlp.fc1", "blocks.#.mlp.fc1",
        "encoder.layers.encoder_layer_#.mlp.0"},
    Row{"blocks.block#.down", "h.#.mlp.c_proj", 0, "model.layers.#.mlp.down_proj",
        "vit.encoder.layer.#.output.dense", "vit.layers.#.mlp.fc2", "blocks.#.mlp.fc2",
        "encoder.layers.encoder_layer_#.mlp.3"},
    Row{"blocks.norm", "ln_f", 0, "model.norm", "vit.layernorm", "", "norm", "encoder.ln"},
    Row{"output", "", 0, "lm_head", "classifier", "", "head", "heads.head"}};

/// Where a name ends with one product of queries, keys and values.
bool is_fused(std::string_view name) {
    return name.ends_with("c_attn") || name.ends_with("attn.qkv") || name.ends_with("in_proj_");
}

std::string numbered(std::string_view pattern, std::string const& number) {
    auto const at = pattern.find('#');
    return at == std::string_view::npos
               ? std::string(pattern)
               : concat(pattern.substr(0, at), number, pattern.substr(at + 1));
}

/// A parameter of ours as the rows have it.
struct Parameter {
    std::string stem;
    std::string number; ///< of the block, from 0
    std::string kind;   ///< ".weight", ".bias", or none

    explicit Parameter(std::string const& name) : stem(name) {
        constexpr std::string_view block = "blocks.block";
        if (name.starts_with(block)) {
            auto const end = name.find('.', block.size());
            auto const own = number_of<std::int64_t>(name.substr(block.size(), end - block.size()));
            number = std::to_string(own.value_or(1) - 1);
            stem = concat(block, "#", name.substr(end));
        }
        if (auto const dot = stem.rfind('.');
            stem.ends_with(".weight") || stem.ends_with(".bias")) {
            kind = stem.substr(dot);
            stem.resize(dot);
        }
    }

    Row const* row() const {
        auto const* const found = std::ranges::find(rows, stem, &Row::ours);
        return found == rows.end() ? nullptr : found;
    }
    WeightSource under(std::string_view name, int part) const {
        auto const ending = name.ends_with('_') && !kind.empty() ? kind.substr(1) : kind;
        bool const fused = is_fused(name);
        return {.name = concat(numbered(name, number), ending),
                .part = fused ? part : 0,
                .parts = fused ? 3 : 1};
    }
};

} // namespace

std::vector<WeightSource> names_elsewhere(std::string const& parameter) {
    Parameter const asked(parameter);
    auto const* const row = asked.row();
    std::vector<WeightSource> found;
    if (row == nullptr) {
        return found;
    }
    if (!row->gpt2.empty()) {
        bool const product =
            row->gpt2.find(".c_") != std::string_view::npos && asked.kind == ".weight";
        for (auto const* const prefix : {"", "transformer."}) {
            auto source = asked.under(row->gpt2, row->part);
            source.name = concat(prefix, source.name);
            source.transposed = product;
            found.push_back(std::move(source));
        }
    }
    for (auto const name : {row->llama, row->vit, row->later_vit, row->timm, row->torchvision}) {
        if (!name.empty()) {
            found.push_back(asked.under(name, row->part));
        }
    }
    return found;
}

std::optional<WeightSource> name_in(Package package, std::string const& model,
                                    std::string const& tensor) {
    if (model == "resnet") {
        auto const names = resnet_names_elsewhere(tensor);
        return names.empty() ? std::nullopt : std::optional(names.front());
    }
    Parameter const asked(tensor);
    auto const* const row = model == "vit" ? asked.row() : nullptr;
    auto const name = row == nullptr             ? std::string_view()
                      : package == Package::timm ? row->timm
                                                 : row->torchvision;
    return name.empty() ? std::nullopt : std::optional(asked.under(name, row->part));
}

} // namespace lockstep::nn
