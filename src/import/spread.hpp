#pragma once

#include <cstddef>
#include <span>

namespace lockstep::import {

/// How many values there are, their mean, and the sum of their squared distances from it: exact up
/// to rounding even where the mean is large compared with the distances, as with prices and
/// timestamps. Merged in one order (Chan, Golub, LeVeque 1979), the same values give the same bits.
struct Spread {
    double count = 0;
    double mean = 0;
    double squares = 0; ///< of the distances from the mean

    void merge(Spread const& other) {
        if (other.count == 0) {
            return;
        }
        auto const both = count + other.count;
        auto const apart = other.mean - mean;
        mean += apart * (other.count / both);
        squares += other.squares + apart * apart * (count * other.count / both);
        count = both;
    }
    double variance() const { return count > 0 ? squares / count : 0; }
};

/// The spread of some values, in two passes; the second corrects the mean of the first.
template <class T>
Spread spread_of(std::span<T const> values) {
    auto const count = static_cast<double>(values.size());
    double sum = 0;
    for (auto const value : values) {
        sum += static_cast<double>(value);
    }
    auto const mean = sum / count;
    double left = 0;
    double squares = 0;
    for (auto const value : values) {
        auto const distance = static_cast<double>(value) - mean;
        left += distance;
        squares += distance * distance;
    }
    return {count, mean + left / count, squares - left * (left / count)};
}

} // namespace lockstep::import
