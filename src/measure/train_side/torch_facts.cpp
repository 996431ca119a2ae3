#include "torch_facts.hpp"

#include "base/text.hpp"

#include <ATen/Context.h>
#include <ATen/DeviceAccelerator.h>
#include <ATen/Version.h>
#include <torch/version.h>

namespace lockstep::measure {

TorchFacts torch_facts() {
    bool const has_cuda = at::hasCUDA();
    auto const runtime = has_cuda ? concat(" with CUDA ", at::Context::versionCUDART())
                                  : std::string(" without CUDA");
    return {concat(TORCH_VERSION, runtime), at::get_cpu_capability(), has_cuda,
            at::accelerator::deviceCount() > 0};
}

} // namespace lockstep::measure
