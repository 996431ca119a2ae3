#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>

namespace lockstep::nn {

/// A weight in int8, symmetric: real = value * scale of its output.
struct QuantisedWeight {
    torch::Tensor values; ///< int8, of the weight's shape, from -127 to 127
    torch::Tensor scales; ///< [outputs] float32, the first extent
};

/// Shape  weight [outputs, …] float32
QuantisedWeight quantised_weight(torch::Tensor const& weight);
/// Quantises with the given scales, [outputs], positive; values outside the range are clipped.
QuantisedWeight quantised_weight(torch::Tensor const& weight, torch::Tensor const& scales);

/// A bias rounded to whole multiples of the unit of a layer's sums of products, as stored by
/// runtimes that compute entirely in integers; the layer then gives the same results there. Values
/// that do not fit into 32 bits stay as they are.
///
/// Shape  bias, units [outputs]: scale of the inputs * scale of the weights
torch::Tensor quantised_bias(torch::Tensor const& bias, torch::Tensor const& units);

/// The real value that a uint8 stands for: real = scale * (number - zero).
struct ByteScale {
    double scale = 1;
    std::int64_t zero = 0;
};

/// The scale whose numbers reach from `min` to `max`. 0 is one of its values exactly.
ByteScale byte_scale(double min, double max);

/// Real values as numbers of a scale; values beyond its ends are clipped.
///
/// Shape  as `values`; uint8
torch::Tensor to_bytes(torch::Tensor const& values, ByteScale const& scale);

/// How a scale is chosen from the inputs of a layer in calibration.
enum class Calibration {
    minmax,     ///< all values are within it
    percentile, ///< 99.99 % of them are
    mse         ///< the mean squared error of the rounded values is the least
};

/// Throws  std::out_of_range for an unknown name
Calibration calibration_named(std::string const& name);

/// The inputs that a layer received: first their range, then a histogram within it.
class Observed {
  public:
    /// The first pass over the values: call it for all of them before any is counted.
    void widen(torch::Tensor const& values);
    /// The second pass.
    void count(torch::Tensor const& values);

    /// Throws  Error 65 when nothing was observed, or a value was not finite
    ByteScale scale(Calibration how) const;

  private:
    ByteScale percentile() const;
    ByteScale of_min_error() const;

    bool any_ = false;
    double min_ = 0;
    double max_ = 0;
    torch::Tensor counts_; ///< [bins] float64, over equal parts of what lies between the ends
};

} // namespace lockstep::nn
