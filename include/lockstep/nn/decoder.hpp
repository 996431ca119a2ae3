#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>

namespace lockstep::nn {

/// What a model remembers of a text that it continues.
class DecoderState {
  public:
    virtual ~DecoderState() = default;
};

/// A model of texts that can read a text token by token.
class Decoder {
  public:
    virtual ~Decoder() = default;
    virtual std::unique_ptr<DecoderState> begin() const = 0;
    /// Reads tokens after those that `state` has seen.
    ///
    /// Shape   tokens [1, new] int64; returns [vocabulary], the scores of the token after them
    /// Throws  Error 64 beyond `context` tokens
    virtual torch::Tensor next(torch::Tensor const& tokens, DecoderState& state) = 0;
    /// Tokens that a text may have at most; 0: any number.
    virtual std::int64_t context() const = 0;
};

} // namespace lockstep::nn
