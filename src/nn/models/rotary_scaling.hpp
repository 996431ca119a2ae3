#pragma once

#include <torch/types.h>

#include <string>

namespace lockstep::nn {

/// How the frequencies of rotary positions are changed for texts that are longer than those a model
/// was first trained with: `rope_scaling` of the transformers package.
struct RotaryScaling {
    enum class Kind { none, linear, llama3 };
    Kind kind = Kind::none;
    double factor = 1;  ///< that frequencies are divided by: all (linear), or the low ones (llama3)
    double low = 0;     ///< of llama3: at most as many waves in `context` are a low frequency,
    double high = 0;    ///< and at least as many a high one, which stays as it is
    double context = 0; ///< positions of the samples that the model was first trained with

    /// From "none", "linear FACTOR" or "llama3 FACTOR LOW HIGH CONTEXT" (model.rotary-scaling).
    ///
    /// Throws  Error 64 for another text
    static RotaryScaling of(std::string const& text);

    /// Shape  [pairs], radians per position
    torch::Tensor scaled(torch::Tensor const& frequencies) const;

    bool operator==(RotaryScaling const&) const = default;
};

} // namespace lockstep::nn
