#pragma once

#include "base/text.hpp"
#include "data/sample_axes.hpp"
#include "lockstep/nn/model.hpp"

#include <algorithm>
#include <string>

namespace lockstep::nn {

/// An interface that a model may implement, too: it goes by what the dimensions of a sample mean.
class AxisReader {
  public:
    virtual ~AxisReader() = default;
    virtual data::SampleAxes axes() const = 0;
    /// A warning where a dimension that holds channels or features is read otherwise; else empty.
    virtual std::string remark_on(std::size_t axis) const {
        return std::ranges::count(axes().places, axis) == 0
                   ? std::string()
                   : concat("warning: dimension ", axis,
                            " of a sample is read as time, but data.train has one mean and std for "
                            "each of its elements. Store samples as rows of features");
    }
};

/// As the model reads them, or else guessed.
inline data::SampleAxes axes_of(Model const& model, data::Facts const& facts) {
    auto const* const reader = dynamic_cast<AxisReader const*>(&model);
    return reader != nullptr ? reader->axes() : data::guessed_axes(facts);
}

} // namespace lockstep::nn
