#include "import/log_mel.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

namespace lockstep::import {

namespace {

constexpr double min_energy = 1e-10;

double mel(double frequency) {
    return 2595 * std::log10(1 + frequency / 700);
}
double frequency(double mel) {
    return 700 * (std::pow(10, mel / 2595) - 1);
}

} // namespace

LogMel::LogMel(LogMelOptions const& options) {
    auto const rate = static_cast<double>(options.rate);
    auto const width = static_cast<std::size_t>(std::lround(options.window_s * rate));
    hop_ = static_cast<std::size_t>(std::max(std::lround(options.hop_s * rate), 1L));
    auto const size = std::bit_ceil(std::max<std::size_t>(width, 2));
    for (std::size_t n = 0; n < width; ++n) {
        window_.push_back(0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(n) /
                                               static_cast<double>(width)));
    }
    for (std::size_t k = 0; k < size / 2; ++k) {
        roots_.push_back(std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(k) /
                                             static_cast<double>(size)));
    }
    auto const top = mel(rate / 2);
    auto const edge = [&](std::size_t i) {
        return frequency(top * static_cast<double>(i) / static_cast<double>(options.bands + 1));
    };
    for (std::size_t b = 0; b < options.bands; ++b) {
        Band band;
        double const left = edge(b);
        double const center = edge(b + 1);
        double const right = edge(b + 2);
        for (std::size_t k = 0; k <= size / 2; ++k) {
            double const f = static_cast<double>(k) * rate / static_cast<double>(size);
            double const weight =
                std::min((f - left) / (center - left), (right - f) / (right - center));
            if (weight > 0) {
                band.first = band.weights.empty() ? k : band.first;
                band.weights.push_back(weight);
            }
        }
        if (band.weights.empty()) {
            throw Error(ExitCode::usage,
                        {concat("--mels ", options.bands),
                         concat("band ", b,
                                " (counted from 0) contains no frequency of the Fourier "
                                "transform at a sample rate of ",
                                options.rate, " Hz"),
                         "Lower --mels"});
        }
        bands_.push_back(std::move(band));
    }
}

std::size_t LogMel::frames(std::size_t values) const {
    return values < window_.size() ? 0 : 1 + (values - window_.size()) / hop_;
}

/// In place: decimation in time (Cooley, Tukey, 1965).
void LogMel::transform(std::vector<std::complex<double>>& values) const {
    auto const size = values.size();
    for (std::size_t i = 1, j = 0; i < size; ++i) {
        auto bit = size >> 1;
        for (; (j & bit) != 0; bit >>= 1) {
            j ^= bit;
        }
        j ^= bit;
        if (i < j) {
            std::swap(values[i], values[j]);
        }
    }
    for (std::size_t half = 1; half < size; half *= 2) {
        auto const stride = size / (2 * half);
        for (std::size_t start = 0; start < size; start += 2 * half) {
            for (std::size_t k = 0; k < half; ++k) {
                auto const odd = values[start + half + k] * roots_[k * stride];
                auto const even = values[start + k];
                values[start + k] = even + odd;
                values[start + half + k] = even - odd;
            }
        }
    }
}

std::vector<float> LogMel::operator()(std::span<float const> values) const {
    std::vector<float> features;
    std::vector<std::complex<double>> spectrum(2 * roots_.size());
    for (std::size_t t = 0; t < frames(values.size()); ++t) {
        std::fill(spectrum.begin(), spectrum.end(), 0);
        for (std::size_t n = 0; n < window_.size(); ++n) {
            spectrum[n] = window_[n] * static_cast<double>(values[t * hop_ + n]);
        }
        transform(spectrum);
        for (auto const& band : bands_) {
            double energy = 0;
            for (std::size_t k = 0; k < band.weights.size(); ++k) {
                energy += band.weights[k] * std::norm(spectrum[band.first + k]);
            }
            features.push_back(static_cast<float>(std::log(std::max(energy, min_energy))));
        }
    }
    return features;
}

} // namespace lockstep::import
