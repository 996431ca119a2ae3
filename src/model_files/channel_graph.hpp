#pragma once

#include "lockstep/nn/model.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace lockstep::train {

/// A parameter or a buffer of a model, and which channel each index of its extents belongs to.
struct ChannelTensor {
    static constexpr int none = -1;
    std::string name;
    bool trains = true;                     ///< a parameter, not a buffer
    std::vector<std::int64_t> shape;        ///< the shape in the model
    std::vector<std::vector<int>> channels; ///< by extent; `none`: no channel that may be removed
};

/// Channels that can only be removed together, since residual additions, concatenations, norms or
/// the layers that use them tie them: indices in tensors, after DepGraph (Fang et al., arXiv
/// 2301.12900).
struct Channel {
    struct TensorIndex {
        std::size_t tensor = 0;
        std::size_t extent = 0;
        std::int64_t index = 0;
    };
    std::vector<TensorIndex> places;
    std::size_t layer = 0; ///< channels of one layer lie in the same extents of the same tensors
};

/// The channels of a model and what depends on them, from the operators that LibTorch ran in one
/// forward pass. Channels that reach an unknown operator are not removed.
class ChannelGraph {
  public:
    /// For models of one input of real values. `model` is read only.
    ///
    /// Throws  Error 64 for a forward that cannot be recorded (as `record_calls`)
    ChannelGraph(nn::Model& model, std::vector<std::int64_t> const& sample_shape,
                 torch::Device device);

    std::vector<ChannelTensor> const& tensors() const noexcept { return tensors_; }
    std::vector<Channel> const& channels() const noexcept { return channels_; }
    std::size_t layers() const noexcept { return layers_; } ///< of channels
    /// Operators through which channels could not be traced, or which tie all of them together, so
    /// that these stay.
    std::set<std::string> const& barriers() const noexcept { return barriers_; }

    /// Multiply-adds of convolutions and fully connected layers for one sample, with these
    /// channels; also of layers whose weights are computed, which keep theirs. With groups, as many
    /// per position as the weight has elements.
    ///
    /// Shape  kept [channels]
    double macs(std::vector<char> const& kept) const;
    double macs() const { return macs(std::vector<char>(channels_.size(), 1)); }

    /// The indices of an extent that are kept.
    std::vector<std::int64_t> kept_indices(std::size_t tensor, std::size_t extent,
                                           std::vector<char> const& kept) const;

  private:
    friend class ChannelTracer;
    struct Product {
        std::size_t weight = 0;  ///< in tensors_
        std::int64_t places = 0; ///< of a sample at which it is used
    };

    std::vector<ChannelTensor> tensors_;
    std::vector<Channel> channels_;
    std::vector<Product> products_;
    double fixed_macs_ = 0; ///< of layers that lose no channels
    std::size_t layers_ = 0;
    std::set<std::string> barriers_;
};

} // namespace lockstep::train
