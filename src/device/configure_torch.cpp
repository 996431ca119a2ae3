#include "device/configure_torch.hpp"

#include <torch/utils.h>

namespace lockstep::train {

namespace {

/// MKL settles which kernels its vector functions (sqrt, tanh, exp, …) take on their first call, in
/// a variable that it writes twice without a lock: a thread whose own first call falls between the
/// two takes a kernel of lower accuracy, about once in a thousand starts of threads that come
/// together.
void settle_vector_kernels() {
    torch::sqrt(torch::ones({1}));
}

} // namespace

void configure_torch(config::Run const& run) {
    torch::set_num_threads(static_cast<int>(run.threads));
    at::globalContext().setDeterministicAlgorithms(run.deterministic, /*warn_only=*/false);
    // That mode also fills whatever is allocated with NaN, for operators that would read it before
    // they write: a pass over memory for each tensor.
    at::globalContext().setDeterministicFillUninitializedMemory(false);
    at::globalContext().setFlushDenormal(true);
    settle_vector_kernels();
}

} // namespace lockstep::train
