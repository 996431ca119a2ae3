#include "device/precision.hpp"

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

std::optional<ErrorText> slow_precision(config::Precision const& precision, bool on_cpus) {
#if defined(__x86_64__)
    if (on_cpus && precision.compute == "fp16" && !__builtin_cpu_supports("avx512fp16")) {
        return ErrorText{"precision.compute = fp16",
                         "this processor cannot compute in fp16, so a step may take 100 times as "
                         "long as in fp32",
                         "Set precision.compute = bf16 or fp32"};
    }
#endif
    return std::nullopt;
}

std::string slow_precision_text(config::Precision const& precision, bool on_cpus) {
    auto const slow = slow_precision(precision, on_cpus);
    return slow ? concat("warning: ", slow->what, ": ", slow->why, ". ", slow->next)
                : std::string();
}

std::string memory_format(config::Precision const& precision) {
    if (precision.memory_format != "auto") {
        return precision.memory_format;
    }
    return precision.compute == "fp32" ? "contiguous" : "channels-last";
}

} // namespace lockstep::train
