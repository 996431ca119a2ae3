#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::import {

/// How log-mel features are computed from a recording.
struct LogMelOptions {
    int rate = 16000; ///< values per second
    std::size_t bands = 40;
    double window_s = 0.025;
    double hop_s = 0.010;
};

/// Log-mel features, frame t of the values x:
///   w[n] = 0.5 - 0.5 cos(2 pi n / W), n < W                        periodic Hann
///   P[k] = |sum_n w[n] x[t H + n] exp(-2 pi i k n / F)|^2          F: next power of two of W
///   E[b] = sum_k max(0, min((f_k - c_b) / (c_b+1 - c_b), (c_b+2 - f_k) / (c_b+2 - c_b+1))) P[k]
///   y[b] = log(max(E[b], 1e-10))
/// with f_k = k rate / F, and band edges c_0 = 0 … c_bands+1 = rate / 2 evenly spaced in
/// mel = 2595 log10(1 + f / 700) (Davis, Mermelstein, IEEE TASSP 28, 1980; HTK's scale). Frames lie
/// wholly within the recording.
class LogMel {
  public:
    /// Throws  Error 64 for a band that no frequency falls into
    explicit LogMel(LogMelOptions const& options);

    /// Frames of a recording of `values` values; 0 where it is shorter than the window.
    std::size_t frames(std::size_t values) const;

    /// Shape  returned [frames, bands]
    std::vector<float> operator()(std::span<float const> values) const;

  private:
    /// The weights of frequency `first` and the following ones in a band.
    struct Band {
        std::size_t first = 0;
        std::vector<double> weights;
    };

    void transform(std::vector<std::complex<double>>& values) const;

    std::vector<double> window_;
    std::size_t hop_ = 1;
    std::vector<Band> bands_;
    std::vector<std::complex<double>> roots_; ///< exp(-2 pi i k / F), k < F / 2
};

} // namespace lockstep::import
