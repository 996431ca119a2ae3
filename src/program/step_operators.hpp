#pragma once

namespace lockstep::program {

/// Makes the operators known to LibTorch that compiled steps call and that are not LibTorch's own:
///
/// lockstep::mm_into(a, b, place)       writes the product a·b into `place`
/// lockstep::linear(x, weight, bias)    x·weightᵀ + bias for a large weight, by the faster of two
///                                      libraries, by the number of rows and the processor
/// lockstep::max_pool2d, max_pool2d_backward
///                                      max_pool_with_indices, and LibTorch's gradient of it, under
///                                      names that Inductor leaves alone
///
/// Any number of calls, from any thread.
void register_step_operators();

} // namespace lockstep::program
