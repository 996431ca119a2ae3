#include "nn/low_rank.hpp"

#include "base/adapter_names.hpp"
#include "base/hash.hpp"
#include "base/name_patterns.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "nn/adapter.hpp"
#include "nn/freezing.hpp"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace lockstep::nn {

namespace {

/// The projections of attention, of our transformers and of the usual exported ones.
constexpr std::array<std::string_view, 16> attention{"query",       "key",
                                                     "value",       "q_proj",
                                                     "k_proj",      "v_proj",
                                                     "o_proj",      "out_proj",
                                                     "qkv",         "attn.proj",
                                                     "Wqkv",        "c_attn",
                                                     "attn.c_proj", "query_key_value",
                                                     "in_proj",     "attention.dense"};

std::string attention_patterns() {
    std::string patterns = "blocks.*.output, *.attention.output.dense";
    for (auto const name : attention) {
        patterns += concat(", ", name, ", *.", name);
    }
    return patterns;
}

std::string told_rank(config::Model const& chosen) {
    return concat("model.lora-rank = ", chosen.lora_rank);
}

std::string some_of(std::vector<std::string> const& layers) {
    return concat("Linear layers have ", names_text(layers));
}

/// Layers whose weight is trained as a whole need no adapter.
std::vector<AdapterPlace> all_places(Model& model, config::Model const& chosen) {
    auto places = adapter_places(model);
    bool const has_places = !places.empty();
    NamePatterns const trained(chosen.lora_train);
    std::erase_if(places,
                  [&](auto const& place) { return trained.has(concat(place.layer, ".weight")); });
    if (has_places && places.empty()) {
        throw Error(ExitCode::usage,
                    {concat("model.lora-train = ", chosen.lora_train),
                     "it trains all linear layers as a whole: none is left for an adapter",
                     "Name fewer parameters, or set model.lora-rank = 0"});
    }
    if (places.empty()) {
        throw Error(ExitCode::usage,
                    {concat(told_rank(chosen), " cannot be used with model.name = ", chosen.name),
                     "the model has no linear layer that can get an adapter",
                     "Choose a transformer, vit or another model with linear layers, or a program "
                     "of torch.export; or train some of the parameters (optimizer.freeze)"});
    }
    return places;
}

/// The names that patterns may fit: an exception may be of a layer that gets no adapter anyway.
std::vector<std::string> names_in(Model const& model, std::vector<std::string> layers) {
    for (auto const& item : model.named_modules()) {
        if (!item.key().empty()) {
            layers.push_back(item.key());
        }
    }
    return layers;
}

std::vector<AdapterPlace> chosen_places(Model& model, config::Model const& chosen) {
    auto places = all_places(model, chosen);
    std::vector<std::string> layers;
    std::ranges::transform(places, std::back_inserter(layers), &AdapterPlace::layer);
    std::string const text(trimmed(chosen.lora_targets));
    bool const usual = text == "attention";
    NamePatterns const patterns(usual ? attention_patterns() : text);
    if (auto const unused = usual ? "" : patterns.unused(names_in(model, layers));
        !unused.empty()) {
        throw Error(ExitCode::usage,
                    {concat("model.lora-targets = ", text),
                     concat(unused, " fits no linear layer that can get an adapter"),
                     suggested_pattern(unused, layers, some_of(layers))});
    }
    std::erase_if(places, [&](auto const& place) { return !patterns.has(place.layer); });
    if (places.empty()) {
        throw Error(ExitCode::usage,
                    {concat("model.lora-targets = ", text),
                     usual ? "the model has no projections of attention with a name that is known"
                           : "no layer is left",
                     concat("Set model.lora-targets to patterns of layers. ", some_of(layers))});
    }
    return places;
}

void require_trained_is_used(Model const& model, config::Model const& chosen) {
    std::vector<std::string> names;
    for (auto const& item : model.named_parameters()) {
        names.push_back(item.key());
    }
    if (auto const unused = NamePatterns(chosen.lora_train).unused(names); !unused.empty()) {
        throw Error(
            ExitCode::usage,
            {concat("model.lora-train = ", chosen.lora_train),
             concat(unused, " fits no parameter of the model"),
             suggested_pattern(unused, names, concat("The model has ", names_text(names)))});
    }
}

Adapter first_adapter(AdapterPlace const& place, config::Model const& chosen, std::uint64_t seed) {
    auto const inputs = place.weight.size(1);
    auto const bound = 1 / std::sqrt(static_cast<double>(inputs));
    auto const name = concat(place.layer, ".", adapter_a);
    auto generator =
        at::detail::createCPUGenerator(random_key(seed, Stream::adapters, {hash64(name)}));
    auto const a = torch::empty({chosen.lora_rank, inputs}).uniform_(-bound, bound, generator);
    return {.a = a.to(place.weight.options()),
            .b = torch::zeros({place.weight.size(0), chosen.lora_rank}, place.weight.options()),
            .scale = adapter_scale(chosen)};
}

} // namespace

double adapter_parameters(Model& model, config::Model const& chosen) {
    if (chosen.lora_rank == 0) {
        return 0;
    }
    double count = 0;
    for (auto const& place : chosen_places(model, chosen)) {
        count += static_cast<double>(chosen.lora_rank) *
                 static_cast<double>(place.weight.size(0) + place.weight.size(1));
    }
    return count;
}

std::vector<std::string> adapt(Model& model, config::Model const& chosen, std::uint64_t seed) {
    if (chosen.lora_rank == 0) {
        return {};
    }
    require_trained_is_used(model, chosen);
    for (auto const& place : chosen_places(model, chosen)) {
        place.add(first_adapter(place, chosen, seed));
    }
    return freeze_all_but(model, NamePatterns(chosen.lora_train), told_rank(chosen));
}

} // namespace lockstep::nn
