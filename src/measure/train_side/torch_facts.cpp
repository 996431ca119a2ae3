#include "torch_facts.hpp"

#include "base/text.hpp"

#include <ATen/Context.h>
#include <ATen/DeviceAccelerator.h>
#include <ATen/Version.h>
#include <torch/version.h>

namespace lockstep::measure {

TorchFacts torch_facts() {
    auto const kind = at::accelerator::getAccelerator();
    return {concat(TORCH_VERSION, " for ",
                   kind ? c10::DeviceTypeName(*kind, /*lower_case=*/true) : "CPUs only"),
            at::get_cpu_capability(), kind.has_value(), at::accelerator::deviceCount() > 0};
}

} // namespace lockstep::measure
