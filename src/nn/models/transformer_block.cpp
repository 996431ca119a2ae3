#include "transformer_block.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/nn/recompute.hpp"
#include "nn/aware_layer.hpp"

#include <torch/nn/init.h>
#include <torch/nn/modules/activation.h>

#include <cmath>

namespace lockstep::nn {

namespace {

/// Whether anything has a bias.
bool has_bias(config::OwnValues const& values) {
    try {
        return values.text("bias") == "qkv" || values.boolean("bias");
    } catch (Error const& error) { // it names the values of a boolean key only
        auto text = error.text();
        text.why = "expected true, false or qkv";
        throw Error(error.code(), text);
    }
}

void require(bool fits, std::string const& what, std::string const& why, std::string const& next) {
    if (!fits) {
        throw Error(ExitCode::usage, {what, why, next});
    }
}

/// Rotates pairs (i, i + half) of each position's values by its angles.
torch::Tensor rotated(torch::Tensor const& values, TransformerForm const& form,
                      std::int64_t first) {
    auto const half = values.size(3) / 2;
    auto const real = torch::TensorOptions(torch::kFloat32).device(values.device());
    auto const pairs = torch::arange(half, real) / static_cast<double>(half);
    auto const places = torch::arange(first, first + values.size(2), real);
    auto const frequencies = form.rotary_scaling.scaled(torch::pow(form.rotary_base, -pairs));
    auto const angles = places.unsqueeze(1) * frequencies.unsqueeze(0);
    auto const cosine = angles.cos().to(values.scalar_type());
    auto const sine = angles.sin().to(values.scalar_type());
    auto const left = values.slice(3, 0, half);
    auto const right = values.slice(3, half);
    return torch::cat({left * cosine - right * sine, right * cosine + left * sine}, 3);
}

} // namespace

void draw_normal(torch::Tensor const& weight, double deviation) {
    torch::nn::init::normal_(weight, 0, deviation);
}

std::vector<config::OwnKey> TransformerForm::keys(std::string const& norm,
                                                  std::string const& activation,
                                                  std::string const& bias) {
    return {
        {"layers", "6", "number of blocks"},
        {"width", "384", "values per position"},
        {"heads", "6", "number of attention heads; width must be a multiple of this number"},
        {"key-value-heads", "0",
         "number of key and value heads; heads must be a multiple of this number; 0: the same "
         "number as heads"},
        {"feed-forward", "0",
         "width of the feed-forward layer; 0: 4 times width, or about 8/3 times width with swiglu"},
        {"norm", norm, "kind of norm: rms or layer"},
        {"norm-epsilon", "1e-5", "term added to the variance in norms"},
        {"activation", activation,
         "activation function of the feed-forward layer: swiglu, gelu or gelu-tanh"},
        {"bias", bias,
         "add a bias to linear layers: true, false, or qkv (only for queries, keys and values)"},
        {"dropout", "0",
         "dropout probability for the embeddings, and for the outputs of attention and "
         "feed-forward in each block"}};
}

TransformerForm TransformerForm::of(config::OwnValues const& values) {
    TransformerForm form;
    form.layers = values.integer("layers", 1);
    form.width = values.integer("width", 1);
    form.heads = values.integer("heads", 1);
    form.key_value_heads = values.integer("key-value-heads", 0);
    form.feed_forward = values.integer("feed-forward", 0);
    form.norm = values.choice("norm", {"rms", "layer"});
    form.epsilon = values.number("norm-epsilon", 0, 1);
    form.activation = values.choice("activation", {"swiglu", "gelu", "gelu-tanh"});
    form.qkv_bias = has_bias(values);
    form.bias = form.qkv_bias && values.text("bias") != "qkv";
    form.dropout = values.number("dropout", 0, 0.999);
    if (form.key_value_heads == 0) {
        form.key_value_heads = form.heads;
    }
    if (form.feed_forward == 0) { // whole tiles of 32
        form.feed_forward =
            form.activation == "swiglu" ? (form.width * 8 / 3 + 31) / 32 * 32 : form.width * 4;
    }
    require(form.width % form.heads == 0, concat("model.heads = ", form.heads),
            concat("this number does not divide model.width = ", form.width),
            "Set another number of heads, or another width");
    require(form.heads % form.key_value_heads == 0,
            concat("model.key-value-heads = ", form.key_value_heads),
            concat("this number does not divide model.heads = ", form.heads),
            "Set a number that divides model.heads");
    return form;
}

double TransformerForm::parameters() const {
    auto const w = static_cast<double>(width);
    auto const shared = static_cast<double>(key_value_heads * head());
    auto const between = static_cast<double>(feed_forward);
    double const norms = norm == "layer" ? 2 * w : w;
    double const ups = activation == "swiglu" ? 2 : 1;
    double const biases = (qkv_bias ? w + 2 * shared : 0) + (bias ? w + ups * between + w : 0);
    double const block = 2 * w * w + 2 * w * shared + (ups + 1) * w * between + biases + 2 * norms;
    return static_cast<double>(layers) * block + norms;
}

NormImpl::NormImpl(TransformerForm const& form) : width_(form.width), epsilon_(form.epsilon) {
    weight_ = register_parameter("weight", torch::ones({width_}));
    if (form.norm == "layer") {
        bias_ = register_parameter("bias", torch::zeros({width_}));
    }
}

torch::Tensor NormImpl::forward(torch::Tensor const& values) {
    if (bias_.defined()) {
        return torch::layer_norm(values, {width_}, weight_, bias_, epsilon_);
    }
    return torch::rms_norm(values, {width_}, weight_, epsilon_);
}

TransformerBlockImpl::TransformerBlockImpl(TransformerForm const& form, std::int64_t number,
                                           std::shared_ptr<RandomKey> const& key)
    : form_(form) {
    auto const usual = 0.02;
    auto const deviation = usual / std::sqrt(2.0 * static_cast<double>(form.layers));
    auto const shared = form.key_value_heads * form.head();
    auto const linear = [&](char const* name, std::int64_t from, std::int64_t to, bool bias,
                            double of_weight) {
        auto made =
            fully_connected(torch::nn::LinearOptions(from, to).bias(bias), form.quantise_aware);
        auto parameters = made.ptr()->named_parameters();
        draw_normal(parameters["weight"], of_weight);
        if (bias) {
            torch::nn::init::zeros_(parameters["bias"]);
        }
        register_module(name, made.ptr());
        return made;
    };
    attention_norm_ = register_module("attention_norm", Norm(form));
    query_ = linear("query", form.width, form.width, form.qkv_bias, usual);
    key_ = linear("key", form.width, shared, form.qkv_bias, usual);
    value_ = linear("value", form.width, shared, form.qkv_bias, usual);
    output_ = linear("output", form.width, form.width, form.bias, deviation);
    feed_forward_norm_ = register_module("feed_forward_norm", Norm(form));
    if (form.activation == "swiglu") {
        gate_ = linear("gate", form.width, form.feed_forward, form.bias, usual);
    }
    up_ = linear("up", form.width, form.feed_forward, form.bias, usual);
    down_ = linear("down", form.feed_forward, form.width, form.bias, deviation);
    auto const layer = static_cast<std::uint64_t>(2 * number + 1);
    attention_dropout_ = register_module("attention_dropout", Dropout(form.dropout, layer, key));
    feed_forward_dropout_ =
        register_module("feed_forward_dropout", Dropout(form.dropout, layer + 1, key));
}

torch::Tensor TransformerBlockImpl::attention(torch::Tensor const& values, Visible const& visible,
                                              KeyValues* cache) {
    auto const heads_of = [&](torch::Tensor const& flat, std::int64_t heads) {
        return flat.unflatten(2, {heads, form_.head()}).transpose(1, 2);
    };
    auto query = heads_of(query_.forward(values), form_.heads);
    auto key = heads_of(key_.forward(values), form_.key_value_heads);
    auto value = heads_of(value_.forward(values), form_.key_value_heads);
    auto const seen = cache != nullptr && cache->keys.defined() ? cache->keys.size(2) : 0;
    if (form_.rotary_base > 0) {
        query = rotated(query, form_, seen);
        key = rotated(key, form_, seen);
    }
    if (cache != nullptr) {
        key = seen > 0 ? torch::cat({cache->keys, key}, 2) : key;
        value = seen > 0 ? torch::cat({cache->values, value}, 2) : value;
        *cache = {key, value};
    }
    if (form_.heads != form_.key_value_heads) {
        key = key.repeat_interleave(form_.heads / form_.key_value_heads, 1);
        value = value.repeat_interleave(form_.heads / form_.key_value_heads, 1);
    }
    // What was seen before lies before what is new, all of which one new token may look at.
    bool const causal = visible.causal && !(seen > 0 && values.size(1) == 1);
    auto const found = at::scaled_dot_product_attention(
        query, key, value,
        visible.mask.defined() ? std::optional<torch::Tensor>(visible.mask) : std::nullopt, 0.0,
        causal && !visible.mask.defined());
    return output_.forward(found.transpose(1, 2).flatten(2));
}

torch::Tensor TransformerBlockImpl::feed_forward(torch::Tensor const& values) {
    auto const up = up_.forward(values);
    if (!gate_.is_empty()) {
        return down_.forward(torch::silu(gate_.forward(values)) * up);
    }
    return down_.forward(torch::gelu(up, form_.activation == "gelu-tanh" ? "tanh" : "none"));
}

torch::Tensor TransformerBlockImpl::forward(torch::Tensor const& values, Visible const& visible,
                                            KeyValues* cache) {
    auto const attended =
        values + attention_dropout_(attention(attention_norm_(values), visible, cache));
    return attended + feed_forward_dropout_(feed_forward(feed_forward_norm_(attended)));
}

TransformerBlocksImpl::TransformerBlocksImpl(TransformerForm const& form, bool recompute,
                                             std::shared_ptr<RandomKey> key,
                                             std::shared_ptr<HiddenLink> hidden)
    : recompute_(recompute), key_(std::move(key)), hidden_(std::move(hidden)) {
    for (std::int64_t number = 0; number < form.layers; ++number) {
        blocks_.push_back(
            register_module(concat("block", number + 1), TransformerBlock(form, number, key_)));
    }
    norm_ = register_module("norm", Norm(form));
}

torch::Tensor TransformerBlocksImpl::forward(torch::Tensor values, Visible const& visible,
                                             std::vector<KeyValues>* caches) {
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
        auto& block = blocks_[i];
        if (caches != nullptr) {
            values = block(values, visible, &(*caches)[i]);
        } else if (recompute_) {
            values = recomputed({[block, visible](torch::Tensor const& given) mutable {
                                     return block->forward(given, visible);
                                 },
                                 block->parameters(),
                                 {},
                                 key_},
                                values);
        } else {
            values = block(values, visible);
        }
        if (hidden_->states != nullptr) {
            hidden_->states->keep(concat("blocks.block", i + 1), values);
        }
    }
    return norm_(values);
}

} // namespace lockstep::nn
