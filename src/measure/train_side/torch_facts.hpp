#pragma once

#include <string>

namespace lockstep::measure {

/// What LibTorch says of itself.
struct TorchFacts {
    std::string version;   ///< "2.13.0 with CUDA 12080"
    std::string vectors;   ///< that its CPU kernels use: "AVX512"
    bool has_cuda = false; ///< built with it
    bool sees_gpus = false;
};
TorchFacts torch_facts();

} // namespace lockstep::measure
