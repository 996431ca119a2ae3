#include "config_elsewhere.hpp"

#include "base/file.hpp"
#include "base/json_text.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <type_traits>

namespace lockstep::nn {

namespace {

using Json = nlohmann::json;

/// As a deck has it: "500000", not "500000.0".
std::string value_text(Json const& value) {
    if (value.is_number_float() && std::abs(value.get<double>()) < 1e15 &&
        std::trunc(value.get<double>()) == value.get<double>()) {
        return std::to_string(static_cast<std::int64_t>(value.get<double>()));
    }
    return value.is_string() ? value.get<std::string>() : value.dump();
}

/// Why a value cannot be compared.
struct WrongType {
    std::string why;
};

class Comparison {
  public:
    explicit Comparison(Json const& config) : config_(config) {}

    std::vector<Contradiction> const& found() const { return found_; }

    /// The value under the first of these names that has one, and this name.
    std::pair<std::string, Json> value(std::initializer_list<char const*> names) const {
        for (auto const* const name : names) {
            if (auto const at = config_.find(name); at != config_.end() && !at->is_null()) {
                return {name, *at};
            }
        }
        return {};
    }

    void add(std::string const& name, Json const& value, std::string const& set) {
        found_.push_back({concat(name, " = ", value_text(value)), set});
    }

    /// A number or a truth that a key of the deck holds, too.
    template <class Value>
    void same(std::initializer_list<char const*> names, char const* key, Value ours) {
        auto const [name, theirs] = value(names);
        if (!name.empty() && number_or_truth<Value>(name, theirs) != ours) {
            add(name, theirs, concat(key, " = ", value_text(theirs)));
        }
    }

    /// Throws  WrongType
    template <class Value>
    static Value number_or_truth(std::string const& name, Json const& value) {
        bool const fits = std::is_same_v<Value, bool> ? value.is_boolean() : value.is_number();
        if (!fits) {
            throw WrongType{concat(name, " = ", value.dump(), " is not ",
                                   std::is_same_v<Value, bool> ? "true or false" : "a number")};
        }
        return value.get<Value>();
    }

  private:
    Json const& config_;
    std::vector<Contradiction> found_;
};

/// The activation of ours that is theirs; empty: none is.
std::string activation_of(std::string const& theirs, bool gated) {
    if (gated) {
        return theirs == "silu" || theirs == "swish" ? "swiglu" : "";
    }
    if (theirs == "gelu_new" || theirs == "gelu_pytorch_tanh" || theirs == "gelu_fast") {
        return "gelu-tanh";
    }
    return theirs == "gelu" ? "gelu" : "";
}

/// What scales or bounds values in other models, and no key of a deck can set.
void compare_scales(Comparison& comparison, TransformerForm const& form) {
    auto const neutral_attention = 1 / std::sqrt(static_cast<double>(form.head()));
    for (auto const& [scale, neutral] : std::initializer_list<std::pair<char const*, Json>>{
             {"embedding_multiplier", 1.0},
             {"residual_multiplier", 1.0},
             {"logits_scaling", 1.0},
             {"logit_scale", 1.0},
             {"attention_multiplier", neutral_attention},
             {"attn_logit_softcapping", nullptr},
             {"final_logit_softcapping", nullptr},
             {"scale_attn_weights", true},
             {"scale_attn_by_inverse_layer_idx", false}}) {
        auto const [name, theirs] = comparison.value({scale});
        if (!name.empty() && theirs != neutral) {
            comparison.add(name, theirs, "");
        }
    }
}

void compare_form(Comparison& comparison, TransformerForm const& form) {
    comparison.same({"hidden_size", "n_embd"}, "model.width", form.width);
    comparison.same({"num_attention_heads", "n_head"}, "model.heads", form.heads);
    auto const [name, head] = comparison.value({"head_dim"});
    if (!name.empty() && comparison.found().empty() && head.get<std::int64_t>() != form.head()) {
        comparison.add(name, head, "");
    }
    comparison.same({"num_key_value_heads"}, "model.key-value-heads", form.key_value_heads);
    comparison.same({"num_hidden_layers", "n_layer"}, "model.layers", form.layers);
    comparison.same({"intermediate_size", "n_inner"}, "model.feed-forward", form.feed_forward);
    auto const [epsilon, value] =
        comparison.value({"rms_norm_eps", "layer_norm_epsilon", "layer_norm_eps"});
    bool const rms = epsilon == "rms_norm_eps";
    if (!epsilon.empty()) {
        std::string const norm = rms ? "rms" : "layer";
        if (form.norm != norm) {
            comparison.add(epsilon, value, concat("model.norm = ", norm));
        }
        comparison.same({epsilon.c_str()}, "model.norm-epsilon", form.epsilon);
    }
    auto const [act, theirs] = comparison.value({"hidden_act", "activation_function"});
    if (!act.empty()) {
        auto const ours = activation_of(theirs.get<std::string>(), rms);
        if (ours != form.activation) {
            comparison.add(act, theirs, ours.empty() ? "" : concat("model.activation = ", ours));
        }
    }
    compare_scales(comparison, form);
}

/// Layers that see only the last tokens compute what ours do of samples of at most so many.
void compare_windows(Comparison& comparison, TextForm const& text) {
    auto const [use, is_used] = comparison.value({"use_sliding_window"});
    auto const [layers, types] = comparison.value({"layer_types"});
    bool const slides = (use.empty() || is_used.get<bool>()) &&
                        (layers.empty() || std::ranges::any_of(types, [](Json const& type) {
                             return type == "sliding_attention" || type == "chunked_attention";
                         }));
    for (auto const* const each : {"sliding_window", "attention_chunk_size"}) {
        auto const [name, window] = comparison.value({each});
        auto const tokens =
            name.empty() ? 0 : comparison.number_or_truth<std::int64_t>(name, window);
        if (slides && tokens > 0 && tokens < text.length) {
            comparison.add(name, window,
                           concat("data.sequence to at most ", value_text(window),
                                  ", since attention is over whole samples here"));
        }
    }
}

/// The text of model.rotary-scaling; empty: we have no such scaling.
std::string scaling_text(Json const& rope) {
    auto const kind = rope.contains("rope_type") ? rope.at("rope_type").get<std::string>()
                                                 : rope.value("type", std::string("default"));
    auto const number = [&](char const* name) { return value_text(rope.at(name).get<double>()); };
    if (kind == "default") {
        return "none";
    }
    if (kind == "linear") {
        return concat("linear ", number("factor"));
    }
    if (kind == "llama3") {
        return concat("llama3 ", number("factor"), " ", number("low_freq_factor"), " ",
                      number("high_freq_factor"), " ", number("original_max_position_embeddings"));
    }
    return "";
}

void compare_rotary(Comparison& comparison, TransformerForm const& form) {
    // Release 5 of the package has base and scaling together.
    auto const [name, rope] = comparison.value({"rope_parameters", "rope_scaling"});
    auto [theta, base] = comparison.value({"rope_theta"});
    if (!name.empty() && rope.contains("rope_theta")) {
        theta = "rope_theta";
        base = rope.at("rope_theta");
    }
    if (theta.empty() && name.empty()) {
        return;
    }
    if (form.rotary_base == 0) {
        comparison.add(theta.empty() ? name : theta, theta.empty() ? rope : base,
                       "model.positions = rotary");
    }
    if (!theta.empty() && base.get<double>() != form.rotary_base) {
        comparison.add(theta, base, concat("model.rotary-base = ", value_text(base)));
    }
    auto scaling = name.empty() ? std::string("none") : scaling_text(rope);
    std::optional<RotaryScaling> theirs;
    try {
        theirs = RotaryScaling::of(scaling);
    } catch (Error const&) { // values that no deck may have
        scaling.clear();
    }
    if (scaling.empty() || !(theirs == form.rotary_scaling)) {
        comparison.add(name.empty() ? "rope_scaling" : name, rope,
                       scaling.empty() ? "" : concat("model.rotary-scaling = ", scaling));
    }
}

void compare_text(Comparison& comparison, TransformerForm const& form, TextForm const& text) {
    comparison.same({"vocab_size"}, "model.vocabulary", text.vocabulary);
    auto const [name, positions] = comparison.value({"n_positions"});
    if (!name.empty() && text.positions != positions.get<std::int64_t>()) {
        comparison.add(name, positions,
                       concat(text.positions > 0 ? "" : "model.positions = learnt and ",
                              "model.max-positions = ", value_text(positions)));
    }
    compare_rotary(comparison, form);
    compare_windows(comparison, text);
    if (text.per_sample) {
        return;
    }
    auto const [tie, tied] = comparison.value({"tie_word_embeddings"});
    if (!tie.empty() && tied.get<bool>() && text.outputs != text.vocabulary) {
        comparison.add(tie, tied, concat("task.vocabulary = ", text.vocabulary));
    } else {
        comparison.same({"tie_word_embeddings"}, "model.tied", text.tied);
    }
}

} // namespace

std::vector<Contradiction> contradictions_with(std::filesystem::path const& config,
                                               TransformerForm const& form, TextForm const* text) {
    auto const broken = [&](std::string const& why) {
        return Error(ExitCode::data, {concat(config.string(), " cannot be understood"), why,
                                      "Copy the file again from its source, or remove the file to "
                                      "skip its comparison with the deck"});
    };
    auto const json = parsed_json(
        read_text(config), [&](std::string const& why) { throw broken(concat("it ", why)); });
    if (!json.is_object()) {
        throw broken("it is not a JSON object");
    }
    try {
        Comparison comparison(json);
        compare_form(comparison, form);
        if (text != nullptr) {
            compare_text(comparison, form, *text);
        }
        return comparison.found();
    } catch (WrongType const& wrong) {
        throw broken(wrong.why);
    } catch (Json::exception const& failure) {
        throw broken(failure.what());
    }
}

} // namespace lockstep::nn
