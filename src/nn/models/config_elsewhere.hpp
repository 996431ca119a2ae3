#pragma once

#include "lockstep/nn/model.hpp"

#include <cstdint>
#include <filesystem>
#include <vector>

#include "transformer_block.hpp"

namespace lockstep::nn {

/// What a transformer over tokens has besides its blocks.
struct TextForm {
    std::int64_t vocabulary = 0;
    std::int64_t outputs = 0;
    std::int64_t positions = 0; ///< learnt ones; 0: none
    bool per_sample = false;    ///< outputs are not scores of tokens
    bool tied = false;
    std::int64_t length = 0; ///< tokens of a sample; 0: any number
};

/// In what a model of ours differs from the one that a config.json of the transformers package
/// describes (GPT-2, Llama or ViT). Only what the file says is compared; `text` is null where there
/// are no tokens.
///
/// Throws  Error 65 when the file is not JSON, or a value in it has the wrong type; 66 or 74 when
/// it
///         cannot be read
std::vector<Contradiction> contradictions_with(std::filesystem::path const& config,
                                               TransformerForm const& form, TextForm const* text);

} // namespace lockstep::nn
