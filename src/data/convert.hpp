#pragma once

#include "lockstep/h5/storage.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::data {

/// Makes float32 of stored elements: minus the mean, over the standard deviation. Of inputs, u8
/// stands for shares of 255.
class Normaliser {
  public:
    /// `mean` and `std` have one value each, or one a channel, the first dimension of `shape`; or
    /// none.
    Normaliser(h5::Type type, h5::Shape const& shape, std::vector<double> const& mean,
               std::vector<double> const& std);

    /// Whether elements are float32 as they are stored, so that they can be read in place.
    bool changes_nothing() const noexcept;

    /// Shape  into: whole samples; raw: their elements in the order of bytes of this machine
    void operator()(std::span<std::byte const> raw, std::span<float> into) const;

  private:
    template <class Stored>
    void normalise(std::span<std::byte const> raw, std::span<float> into) const;
    void normalise_halves(std::span<std::byte const> raw, std::span<float> into) const;

    h5::Type type_;
    std::size_t plane_; ///< elements of a channel
    std::vector<float> mean_;
    std::vector<float> std_;
    std::vector<std::array<float, 256>> tables_; ///< u8 → float, by channel
};

bool is_whole(h5::Type type);

/// Whether so many means or deviations fit samples of a shape: one for all, or one for each
/// channel.
bool fit_channels(std::size_t moments, h5::Shape const& shape);

/// Calls `use` with a value of the C++ type of `type`, which is not f16.
template <class Use>
void with_type(h5::Type type, Use use) {
    switch (type) {
    case h5::Type::u8:
        return use(std::uint8_t{});
    case h5::Type::i8:
        return use(std::int8_t{});
    case h5::Type::u16:
        return use(std::uint16_t{});
    case h5::Type::i16:
        return use(std::int16_t{});
    case h5::Type::u32:
        return use(std::uint32_t{});
    case h5::Type::i32:
        return use(std::int32_t{});
    case h5::Type::u64:
        return use(std::uint64_t{});
    case h5::Type::i64:
        return use(std::int64_t{});
    case h5::Type::f64:
        return use(double{});
    default:
        return use(float{});
    }
}

/// Shape   raw: elements of a whole-number type, in the order of bytes of this machine
void to_wholes(h5::Type type, std::span<std::byte const> raw, std::span<std::int64_t> into);

} // namespace lockstep::data
