#pragma once

#include "lockstep/h5/storage.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace lockstep::import {

/// A value that another type cannot hold.
struct Misfit {
    std::size_t element = 0;
    std::string value;
};

/// Converts elements if every one keeps its value: whole numbers exactly; floating-point numbers,
/// infinities and NaN go into floating-point types rounded, but a finite number does not become
/// infinite, nor another number 0. Returns the first element that cannot be converted.
///
/// Shape   raw, into: the same number of elements, in this machine's byte order; `into` is not of
///         f16
std::optional<Misfit> convert_exactly(h5::Type from, std::span<std::byte const> raw,
                                      h5::Type into_type, std::span<std::byte> into);

} // namespace lockstep::import
