#pragma once

#include "lockstep/config/own_keys.hpp"
#include "lockstep/nn/dropout.hpp"
#include "lockstep/nn/model.hpp"

#include <torch/nn/modules/container/any.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rotary_scaling.hpp"

namespace lockstep::nn {

/// The hyper-parameters of a transformer's blocks.
struct TransformerForm {
    std::int64_t layers = 6;
    std::int64_t width = 384;
    std::int64_t heads = 6;
    std::int64_t key_value_heads = 6;  ///< each is shared by heads / key_value_heads heads
    std::int64_t feed_forward = 0;     ///< width between the two products
    std::string norm = "rms";          ///< rms, layer
    double epsilon = 1e-5;             ///< of the norms
    std::string activation = "swiglu"; ///< swiglu, gelu, gelu-tanh
    bool bias = false;                 ///< of all products
    bool qkv_bias = false;             ///< of those that make queries, keys and values
    double dropout = 0;
    double rotary_base = 0; ///< 0: no rotary positions
    RotaryScaling rotary_scaling;
    bool quantise_aware = false; ///< linear layers round their inputs and weights to int8

    /// The keys of a model, which `of` reads; defaults of those that differ between models.
    static std::vector<config::OwnKey> keys(std::string const& norm, std::string const& activation,
                                            std::string const& bias);
    /// Throws  Error 64 for sizes that do not divide each other, or another text
    static TransformerForm of(config::OwnValues const& values);

    std::int64_t head() const { return width / heads; } ///< width of one
    double parameters() const;                          ///< of all blocks and the last norm
};

/// Layer norm (Ba et al., arXiv 1607.06450), or root mean square norm (Zhang and Sennrich, NeurIPS
/// 2019) of the last extent.
class NormImpl : public torch::nn::Module {
  public:
    NormImpl(TransformerForm const& form);
    torch::Tensor forward(torch::Tensor const& values);

  private:
    std::int64_t width_;
    double epsilon_;
    torch::Tensor weight_;
    torch::Tensor bias_; ///< of layer norm
};
TORCH_MODULE(Norm);

/// Keys and values of what a block has seen before, for text that is generated token by token.
struct KeyValues {
    torch::Tensor keys; ///< [n, key_value_heads, seen, head]; undefined: nothing yet
    torch::Tensor values;
};

/// Which positions a position may look at.
struct Visible {
    bool causal = false;
    torch::Tensor mask{}; ///< [n, 1, L, L] bool, where `causal` is not enough
};

/// Attention and a feed-forward part, each after a norm and added to its input (pre-norm: Xiong et
/// al., ICML 2020). Positions are rotated into queries and keys (Su et al., arXiv 2104.09864) in
/// halves, as Llama does.
class TransformerBlockImpl : public torch::nn::Module {
  public:
    /// `number` counts blocks from 0; layers that draw are numbered by it.
    TransformerBlockImpl(TransformerForm const& form, std::int64_t number,
                         std::shared_ptr<RandomKey> const& key);

    /// Shape  [n, L, width]; `cache`, where there is one, is added to
    torch::Tensor forward(torch::Tensor const& values, Visible const& visible,
                          KeyValues* cache = nullptr);

  private:
    torch::Tensor attention(torch::Tensor const& values, Visible const& visible, KeyValues* cache);
    torch::Tensor feed_forward(torch::Tensor const& values);

    TransformerForm form_;
    Norm attention_norm_{nullptr};
    torch::nn::AnyModule query_;
    torch::nn::AnyModule key_;
    torch::nn::AnyModule value_;
    torch::nn::AnyModule output_;
    Norm feed_forward_norm_{nullptr};
    torch::nn::AnyModule gate_; ///< of swiglu
    torch::nn::AnyModule up_;
    torch::nn::AnyModule down_;
    Dropout attention_dropout_{nullptr};
    Dropout feed_forward_dropout_{nullptr};
};
TORCH_MODULE(TransformerBlock);

/// All blocks and the norm after them. Weights are drawn as GPT-2 does: normal, 0.02, with those
/// before an addition divided by the square root of their number.
class TransformerBlocksImpl : public torch::nn::Module {
  public:
    TransformerBlocksImpl(TransformerForm const& form, bool recompute,
                          std::shared_ptr<RandomKey> key, std::shared_ptr<HiddenLink> hidden);
    /// Shape  [n, L, width]; `caches` [layers], or none
    torch::Tensor forward(torch::Tensor values, Visible const& visible,
                          std::vector<KeyValues>* caches = nullptr);

  private:
    bool recompute_;
    std::shared_ptr<RandomKey> key_;
    std::shared_ptr<HiddenLink> hidden_;
    std::vector<TransformerBlock> blocks_;
    Norm norm_{nullptr};
};
TORCH_MODULE(TransformerBlocks);

/// Draws a weight as the blocks do.
void draw_normal(torch::Tensor const& weight, double deviation = 0.02);

} // namespace lockstep::nn
