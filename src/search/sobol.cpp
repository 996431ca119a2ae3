#include "search/sobol.hpp"

#include <array>

namespace lockstep::search {

namespace {

constexpr unsigned bits = 32;

/// A primitive polynomial over GF(2) and the first direction numbers of its dimension.
struct Direction {
    unsigned degree;
    unsigned coefficients;
    std::array<std::uint32_t, 7> first;
};

constexpr std::array<Direction, sobol_dimensions - 1> directions{{
    {1, 0, {1}},
    {2, 1, {1, 3}},
    {3, 1, {1, 3, 1}},
    {3, 2, {1, 1, 1}},
    {4, 1, {1, 1, 3, 3}},
    {4, 4, {1, 3, 5, 13}},
    {5, 2, {1, 1, 5, 5, 17}},
    {5, 4, {1, 1, 5, 5, 5}},
    {5, 7, {1, 1, 7, 11, 19}},
    {5, 11, {1, 1, 5, 1, 1}},
    {5, 13, {1, 1, 1, 3, 11}},
    {5, 14, {1, 3, 5, 5, 31}},
    {6, 1, {1, 3, 3, 9, 7, 49}},
    {6, 13, {1, 1, 1, 15, 21, 21}},
    {6, 16, {1, 3, 1, 13, 27, 49}},
    {6, 19, {1, 1, 1, 15, 7, 5}},
    {6, 22, {1, 3, 1, 15, 13, 25}},
    {6, 25, {1, 1, 5, 5, 19, 61}},
    {7, 1, {1, 3, 7, 11, 23, 15, 103}},
    {7, 4, {1, 3, 7, 13, 13, 15, 69}},
}};

/// The direction numbers of a dimension, as fractions of 2^32.
std::array<std::uint32_t, bits> numbers_of(std::size_t dimension) {
    std::array<std::uint32_t, bits> numbers{};
    if (dimension == 0) {
        for (unsigned at = 0; at < bits; ++at) {
            numbers[at] = 1U << (bits - 1 - at);
        }
        return numbers;
    }
    auto const& direction = directions[dimension - 1];
    auto const degree = direction.degree;
    for (unsigned at = 0; at < bits; ++at) {
        if (at < degree) {
            numbers[at] = direction.first[at] << (bits - 1 - at);
            continue;
        }
        numbers[at] = numbers[at - degree] ^ (numbers[at - degree] >> degree);
        for (unsigned k = 1; k < degree; ++k) {
            if (((direction.coefficients >> (degree - 1 - k)) & 1U) != 0) {
                numbers[at] ^= numbers[at - k];
            }
        }
    }
    return numbers;
}

} // namespace

std::vector<std::uint32_t> sobol(std::uint32_t index, std::size_t dimensions) {
    auto const gray = index ^ (index >> 1U);
    std::vector<std::uint32_t> point;
    for (std::size_t dimension = 0; dimension < dimensions; ++dimension) {
        auto const numbers = numbers_of(dimension);
        std::uint32_t value = 0;
        for (unsigned at = 0; at < bits; ++at) {
            if (((gray >> at) & 1U) != 0) {
                value ^= numbers[at];
            }
        }
        point.push_back(value);
    }
    return point;
}

} // namespace lockstep::search
