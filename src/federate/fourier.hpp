#pragma once

#include <complex>
#include <vector>

namespace lockstep::federate {

/// The discrete Fourier transform in place, X_f = sum of x_j exp(-2 pi i f j / n), of n values, a
/// power of two from 2: radix 2, after Cooley and Tukey (1965). LibTorch's is out of reach of this
/// room.
void fourier(std::vector<std::complex<double>>& values);

} // namespace lockstep::federate
