#include "base/text.hpp"
#include "nn/models/config_elsewhere.hpp"

#include <fstream>

#include "catch.hpp"
#include "error_of.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using namespace lockstep::nn;

namespace {

TransformerForm llama() {
    TransformerForm form;
    form.layers = 2;
    form.width = 32;
    form.heads = 4;
    form.key_value_heads = 2;
    form.feed_forward = 96;
    form.rotary_base = 500000;
    form.rotary_scaling = RotaryScaling::of("llama3 8 1 4 8192");
    return form;
}

TransformerForm gpt2() {
    TransformerForm form;
    form.layers = 2;
    form.width = 32;
    form.heads = 4;
    form.key_value_heads = 4;
    form.feed_forward = 128;
    form.norm = "layer";
    form.activation = "gelu-tanh";
    form.bias = form.qkv_bias = true;
    return form;
}

/// "says -> set; …", of a config.json with this text.
std::string differences(std::string const& config, TransformerForm const& form,
                        TextForm const* text) {
    test::ScratchDir const scratch;
    std::ofstream(scratch / "config.json") << config;
    std::vector<std::string> found;
    for (auto const& each : contradictions_with(scratch / "config.json", form, text)) {
        found.push_back(concat(each.says, " -> ", each.set));
    }
    return joined(found, "; ");
}

} // namespace

TEST_CASE("a config.json that says what the deck says does not contradict it") {
    TextForm const text{400, 400, 0, false, false};
    CHECK(differences(R"({"hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2,
        "num_hidden_layers": 2, "intermediate_size": 96, "rms_norm_eps": 1e-05, "head_dim": 8,
        "hidden_act": "silu", "vocab_size": 400, "tie_word_embeddings": false,
        "rope_theta": 500000.0, "something": [], "attention_bias": false,
        "rope_scaling": {"factor": 8.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
                         "original_max_position_embeddings": 8192, "rope_type": "llama3"}})",
                      llama(), &text) == "");
    CHECK(differences(R"({"rope_parameters": {"rope_theta": 500000.0, "factor": 8.0,
        "high_freq_factor": 4, "low_freq_factor": 1, "original_max_position_embeddings": 8192,
        "rope_type": "llama3"}})",
                      llama(), &text) == "");
    TextForm const learnt{400, 400, 64, false, true};
    CHECK(differences(R"({"n_embd": 32, "n_head": 4, "n_layer": 2, "n_inner": null,
        "layer_norm_epsilon": 1e-05, "activation_function": "gelu_new", "n_positions": 64,
        "vocab_size": 400})",
                      gpt2(), &learnt) == "");
    CHECK(differences("{}", llama(), &text) == "");
}

TEST_CASE("each contradiction is told with the key that removes it") {
    TextForm const text{400, 400, 0, false, true};
    auto const told = [&](std::string const& config) {
        return differences(config, llama(), &text);
    };
    auto const same_scaling = std::string(
        R"("rope_scaling": {"factor": 8, "high_freq_factor": 4, "low_freq_factor": 1,
            "original_max_position_embeddings": 8192, "rope_type": "llama3"})");
    CHECK(told(R"({"rope_theta": 10000.0, )" + same_scaling + "}") ==
          "rope_theta = 10000 -> model.rotary-base = 10000");
    CHECK(told(R"({"rope_theta": 500000})") ==
          "rope_scaling = null -> model.rotary-scaling = none");
    CHECK(told(R"({"rope_scaling": {"type": "linear", "factor": 2.5}})")
              .ends_with("-> model.rotary-scaling = linear 2.5"));
    CHECK(told(R"({"rope_scaling": {"type": "yarn", "factor": 2.5}})").ends_with("} -> "));
    CHECK(told(R"({"rms_norm_eps": 1e-06})") ==
          "rms_norm_eps = 1e-06 -> model.norm-epsilon = 1e-06");
    CHECK(told(R"({"layer_norm_eps": 1e-05})") == "layer_norm_eps = 1e-05 -> model.norm = layer");
    CHECK(told(R"({"rms_norm_eps": 1e-05, "hidden_act": "gelu"})") == "hidden_act = gelu -> ");
    CHECK(told(R"({"hidden_act": "gelu"})") == "hidden_act = gelu -> model.activation = gelu");
    CHECK(told(R"({"num_attention_heads": 8})") == "num_attention_heads = 8 -> model.heads = 8");
    CHECK(told(R"({"num_key_value_heads": 4})") ==
          "num_key_value_heads = 4 -> model.key-value-heads = 4");
    CHECK(told(R"({"num_hidden_layers": 3})") == "num_hidden_layers = 3 -> model.layers = 3");
    CHECK(told(R"({"hidden_size": 64})") == "hidden_size = 64 -> model.width = 64");
    CHECK(told(R"({"intermediate_size": 64})") ==
          "intermediate_size = 64 -> model.feed-forward = 64");
    CHECK(told(R"({"head_dim": 16})") == "head_dim = 16 -> ");
    CHECK(told(R"({"vocab_size": 512})") == "vocab_size = 512 -> model.vocabulary = 512");
    CHECK(told(R"({"tie_word_embeddings": false})") ==
          "tie_word_embeddings = false -> model.tied = false");
    CHECK(told(R"({"n_positions": 64})") ==
          "n_positions = 64 -> model.positions = learnt and model.max-positions = 64");
    TextForm const padded{512, 400, 0, false, false};
    CHECK(differences(R"({"tie_word_embeddings": true})", llama(), &padded) ==
          "tie_word_embeddings = true -> task.vocabulary = 512");
    CHECK(differences(R"({"rope_theta": 1e4})", gpt2(), &text)
              .starts_with("rope_theta = 10000 -> model.positions = rotary"));
    CHECK(differences(R"({"layer_norm_eps": 1e-12})", gpt2(), nullptr) ==
          "layer_norm_eps = 1e-12 -> model.norm-epsilon = 1e-12");
}

TEST_CASE("a window of attention contradicts longer samples, where layers have it") {
    TextForm const text{400, 400, 0, false, false, 64};
    auto const told = [&](std::string const& config) {
        return differences(config, llama(), &text);
    };
    CHECK(told(R"({"sliding_window": 32})")
              .starts_with("sliding_window = 32 -> data.sequence to at most 32, "));
    CHECK(told(R"({"attention_chunk_size": 63})").starts_with("attention_chunk_size = 63 -> "));
    CHECK(told(R"({"sliding_window": 32, "use_sliding_window": true,
                   "layer_types": ["full_attention", "sliding_attention"]})")
              .starts_with("sliding_window = 32 -> "));
    for (auto const* const config :
         {R"({"sliding_window": 64})", R"({"sliding_window": null})",
          R"({"sliding_window": 32, "use_sliding_window": false})",
          R"({"sliding_window": 32, "layer_types": ["full_attention"]})"}) {
        CAPTURE(config);
        CHECK(told(config) == "");
    }
    TextForm const any{400, 400, 0, false, false};
    CHECK(differences(R"({"sliding_window": 32})", llama(), &any) == "");
}

TEST_CASE("a damaged config.json is refused by name") {
    for (auto const* const config :
         {"", "{", "[]", R"({"hidden_size": "32"})", R"({"hidden_act": 3})",
          R"({"rope_scaling": "linear"})", R"({"rope_scaling": {"type": "linear"}})",
          R"({"tie_word_embeddings": 1})", R"({"sliding_window": "4096"})",
          R"({"use_sliding_window": 1, "sliding_window": 8})"}) {
        CAPTURE(config);
        TextForm const text{400, 400, 0, false, true};
        auto const error = test::error_of([&] { differences(config, llama(), &text); });
        CHECK(error.code() == ExitCode::data);
        CHECK(test::says(error, "config.json"));
    }
    CHECK(test::says(
        test::error_of([&] { differences(R"({"hidden_size": "32"})", llama(), nullptr); }),
        R"(hidden_size = "32" is not a number)"));
    auto const deep = concat("{\"a\": ", std::string(100'000, '['));
    CHECK(test::says(test::error_of([&] { differences(deep, llama(), nullptr); }),
                     "it is nested more than 200 levels deep"));
}

TEST_CASE("scales that no key can set contradict, unless they change nothing") {
    TextForm const text{400, 400, 0, false, false};
    CHECK(differences(R"({"embedding_multiplier": 1, "residual_multiplier": 1.0,
                          "logits_scaling": 1.0, "attn_logit_softcapping": null,
                          "attention_multiplier": 0.35355339059327373})",
                      llama(), &text) == "");
    CHECK(differences(R"({"embedding_multiplier": 12.0})", llama(), &text) ==
          "embedding_multiplier = 12 -> ");
    CHECK(differences(R"({"attention_multiplier": 0.0078125})", llama(), &text) ==
          "attention_multiplier = 0.0078125 -> ");
    CHECK(differences(R"({"final_logit_softcapping": 30.0})", llama(), &text) ==
          "final_logit_softcapping = 30 -> ");
    CHECK(differences(R"({"scale_attn_by_inverse_layer_idx": true})", gpt2(), &text) ==
          "scale_attn_by_inverse_layer_idx = true -> ");
}
