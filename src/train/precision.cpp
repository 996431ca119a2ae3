#include "train/precision.hpp"

#include "base/number.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <ATen/Context.h>

namespace lockstep::train {

std::string configure_precision(config::Precision const& precision, bool deterministic) {
    auto& context = at::globalContext();
    context.setAllowTF32CuBLAS(precision.tf32);
    context.setAllowTF32CuDNN(precision.tf32);
    // The benchmark picks the fastest algorithm of the day, and with it other roundings.
    context.setBenchmarkCuDNN(precision.cudnn_benchmark && !deterministic);
    context.setDeterministicCuDNN(deterministic);
    if (at::Context::hasCuDNN() && precision.cudnn_benchmark && deterministic) {
        return "cuDNN's benchmark mode is off, since run.deterministic = true asks for the same "
               "algorithm every time";
    }
    return {};
}

std::string memory_format(config::Precision const& precision) {
    if (precision.memory_format != "auto") {
        return precision.memory_format;
    }
    return precision.compute == "fp32" ? "contiguous" : "channels-last";
}

} // namespace lockstep::train
