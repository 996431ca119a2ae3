#include "federate/fourier.hpp"

#include <cstddef>
#include <numbers>
#include <span>
#include <utility>

namespace lockstep::federate {

namespace {

using Complex = std::complex<double>;

/// Value half + i is the root exp(-pi i / half), for each half of the sizes that are combined.
std::vector<Complex> roots_of_unity(std::size_t size) {
    std::vector<Complex> roots(size);
    for (std::size_t i = 0; i < size / 2; ++i) { // each by itself: products would lose digits
        auto const share = static_cast<double>(i) / static_cast<double>(size);
        roots[size / 2 + i] = std::polar(1.0, -2 * std::numbers::pi * share);
    }
    for (auto i = size / 2 - 1; i > 0; --i) {
        roots[i] = roots[2 * i];
    }
    return roots;
}

void reverse_bits(std::span<Complex> values) {
    for (std::size_t i = 1, mirrored = 0; i < values.size(); ++i) {
        auto bit = values.size() / 2;
        for (; (mirrored & bit) != 0; bit /= 2) {
            mirrored ^= bit;
        }
        mirrored ^= bit;
        if (i < mirrored) {
            std::swap(values[i], values[mirrored]);
        }
    }
}

/// Halves first, so that small ones stay in the processor's cache.
void combine(std::span<Complex> values, std::span<Complex const> roots) {
    auto const half = values.size() / 2;
    if (half > 1) {
        combine(values.first(half), roots);
        combine(values.last(half), roots);
    }
    for (std::size_t i = 0; i < half; ++i) {
        auto const low = values[i];
        auto const high = values[half + i];
        auto const root = roots[half + i];
        // Written out: the operator looks for NaNs.
        Complex const turned(high.real() * root.real() - high.imag() * root.imag(),
                             high.real() * root.imag() + high.imag() * root.real());
        values[i] = low + turned;
        values[half + i] = low - turned;
    }
}

} // namespace

void fourier(std::vector<Complex>& values) {
    reverse_bits(values);
    combine(values, roots_of_unity(values.size()));
}

} // namespace lockstep::federate
