#pragma once

#include "data/sample_axes.hpp"
#include "lockstep/nn/model.hpp"

namespace lockstep::nn {

/// An interface that a model may implement, too: it goes by what the dimensions of a sample mean.
class AxisReader {
  public:
    virtual ~AxisReader() = default;
    virtual data::SampleAxes axes() const = 0;
};

/// As the model reads them, or else guessed.
inline data::SampleAxes axes_of(Model const& model, data::FieldInfo const& input) {
    auto const* const reader = dynamic_cast<AxisReader const*>(&model);
    return reader != nullptr ? reader->axes() : data::guessed_axes(input);
}

} // namespace lockstep::nn
