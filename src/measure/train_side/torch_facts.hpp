#pragma once

#include <string>

namespace lockstep::measure {

/// What LibTorch reports about itself.
struct TorchFacts {
    std::string version; ///< "2.13.0 for cuda"
    std::string vectors; ///< that its CPU kernels use: "AVX512"
    bool built_for_gpus = false;
    bool sees_gpus = false;
};
TorchFacts torch_facts();

} // namespace lockstep::measure
