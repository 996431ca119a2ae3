#pragma once

#include "data/sample_axes.hpp"
#include "lockstep/config/own_keys.hpp"
#include "lockstep/nn/model.hpp"
#include "nn/axis_reader.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::nn {

/// How images, clips or boxes lie in a sample: [channels, extents…] or [extents…, channels];
/// samples with one dimension less have one channel.
class SampleLayout {
  public:
    static config::OwnKey key();

    /// `dimensions` of an image are 2, of a clip or a box 3. `of_places`: the model gives outputs
    /// for each place.
    ///
    /// Throws  Error 64 for samples with another number of dimensions, or another text in
    ///         model.layout
    SampleLayout(config::OwnValues const& values, Interface const& interface,
                 std::size_t dimensions, bool of_places = false);

    std::int64_t channels() const noexcept { return channels_; }
    std::vector<std::int64_t> const& extents() const noexcept { return extents_; }
    data::SampleAxes axes() const;
    /// A warning where the shape looks as if channels were elsewhere; else empty.
    std::string remark() const;
    /// The same where that dimension holds them by what else is known.
    std::string remark_on(std::size_t axis) const;
    /// What to do about samples that do not fit: to mend the layout where it looks wrong, or else
    /// `next`.
    std::string advice(std::string const& next) const;
    /// On accelerators in the memory format that the interface names.
    ///
    /// Shape  returns [n, channels, extents…]
    torch::Tensor arranged(torch::Tensor const& samples) const;

  private:
    /// Where the channels seem to be instead.
    std::optional<std::size_t> doubtful_axis() const;
    bool is_elsewhere(std::size_t axis) const;
    /// What to do if the channels are there.
    std::string mend(std::size_t axis) const;

    std::int64_t channels_ = 1;
    h5::Shape shape_; ///< of a sample
    std::vector<std::int64_t> extents_;
    bool adds_channel_ = false;
    bool channels_last_ = false;
    bool computes_channels_last_ = false;
    bool of_places_ = false;
};

/// A model of images, clips or boxes.
class PictureModel : public Model, public AxisReader {
  public:
    explicit PictureModel(SampleLayout layout) : layout_(std::move(layout)) {}

    std::string remark() const override { return layout_.remark(); }
    std::string remark_on(std::size_t axis) const override { return layout_.remark_on(axis); }
    data::SampleAxes axes() const override { return layout_.axes(); }

  protected:
    SampleLayout const& layout() const noexcept { return layout_; }

  private:
    SampleLayout layout_;
};

} // namespace lockstep::nn
