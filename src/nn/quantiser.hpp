#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>

namespace lockstep::nn {

/// A weight in whole numbers of 8 bits, symmetric: real = value * scale of its output.
struct QuantisedWeight {
    torch::Tensor values; ///< int8, of the weight's shape, from -127 to 127
    torch::Tensor scales; ///< [outputs] float32, the first extent
};

/// Shape  weight [outputs, …] float32
QuantisedWeight quantised_weight(torch::Tensor const& weight);
/// With scales that are given, [outputs], positive; what lies beyond them becomes their ends.
QuantisedWeight quantised_weight(torch::Tensor const& weight, torch::Tensor const& scales);

/// A bias rounded to whole multiples of what a layer's sums of products count in, as runtimes keep
/// it that compute in whole numbers throughout; such a layer then gives the same there. What 32
/// bits do not hold stays.
///
/// Shape  bias, units [outputs]: scale of the inputs * scale of the weights
torch::Tensor quantised_bias(torch::Tensor const& bias, torch::Tensor const& units);

/// What real values an unsigned number of 8 bits stands for: real = scale * (number - zero).
struct ByteScale {
    double scale = 1;
    std::int64_t zero = 0;
};

/// The scale whose numbers reach from `least` to `most`. 0 is one of its values exactly.
ByteScale byte_scale(double least, double most);

/// Numbers of a scale for real values; those beyond its ends become its ends.
///
/// Shape  as `values`; uint8
torch::Tensor to_bytes(torch::Tensor const& values, ByteScale const& scale);

/// How a scale is chosen from what a layer got in calibration.
enum class Calibration {
    minmax,     ///< all values are within it
    percentile, ///< 99.99 % of them are
    mse         ///< the mean squared error of the rounded values is the least
};

/// Throws  std::out_of_range for a name that is none of theirs
Calibration calibration_named(std::string const& name);

/// What a layer got: first its ends, then how often each value between them came.
class Observed {
  public:
    /// The first time that values come; all of them, before any is counted.
    void widen(torch::Tensor const& values);
    /// The second time.
    void count(torch::Tensor const& values);

    /// Throws  Error 65 when nothing was observed, or a value was not finite
    ByteScale scale(Calibration how) const;

  private:
    ByteScale percentile() const;
    ByteScale of_min_error() const;

    bool any_ = false;
    double least_ = 0;
    double most_ = 0;
    torch::Tensor counts_; ///< [bins] float64, over equal parts of what lies between the ends
};

} // namespace lockstep::nn
