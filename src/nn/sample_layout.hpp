#pragma once

#include "lockstep/config/own_keys.hpp"
#include "lockstep/nn/model.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::nn {

/// How images, clips or boxes lie in a sample: [channels, extents…] or [extents…, channels];
/// samples with one dimension less have one channel.
class SampleLayout {
  public:
    static config::OwnKey key();

    /// `dimensions` of an image are 2, of a clip or a box 3.
    ///
    /// Throws  Error 64 for samples with another number of dimensions, or another text in
    ///         model.layout
    SampleLayout(config::OwnValues const& values, Interface const& interface,
                 std::size_t dimensions);

    std::int64_t channels() const noexcept { return channels_; }
    std::vector<std::int64_t> const& extents() const noexcept { return extents_; }
    /// On accelerators in the memory format that the interface names.
    ///
    /// Shape  returns [n, channels, extents…]
    torch::Tensor arranged(torch::Tensor const& samples) const;

  private:
    std::int64_t channels_ = 1;
    std::vector<std::int64_t> extents_;
    bool adds_channel_ = false;
    bool channels_last_ = false;
    bool computes_channels_last_ = false;
};

} // namespace lockstep::nn
