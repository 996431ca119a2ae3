#pragma once

#include "lockstep/h5/storage.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace lockstep::data {

/// Converts stored elements to float32: subtracts the mean and divides by the standard deviation.
/// In inputs, u8 stands for value / 255. Types that float32 does not hold exactly are rounded once,
/// at the end: times of day in seconds since 1970 differ by less than float32 resolves.
class Normaliser {
  public:
    /// `mean` and `std` have one value each, or one a channel, the first dimension of `shape` or
    /// the last; or none. `last`: as `axis_of_channels` has it.
    Normaliser(h5::Type type, h5::Shape const& shape, std::vector<double> const& mean,
               std::vector<double> const& std, bool last);

    /// Whether elements are float32 as they are stored, so that they can be read in place.
    bool changes_nothing() const noexcept;

    /// Shape  into: whole samples; raw: their elements in this machine's byte order
    void operator()(std::span<std::byte const> raw, std::span<float> into) const;

  private:
    template <class Stored>
    void normalise(std::span<std::byte const> raw, std::span<float> into) const;
    void normalise_halves(std::span<std::byte const> raw, std::span<float> into) const;

    h5::Type type_;
    std::size_t plane_; ///< elements of a channel
    std::vector<double> mean_;
    std::vector<double> std_;
    std::vector<std::array<float, 256>> tables_; ///< u8 → float, by channel
};

} // namespace lockstep::data
