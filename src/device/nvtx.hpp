#pragma once

#include "base/recorder.hpp"

#include <torch/types.h>

namespace lockstep::train {

/// Makes the recorder's scopes NVTX ranges, which Nsight Systems shows, where `device` is an NVIDIA
/// GPU and LibTorch was built for it. While no such tool is attached, a range costs nanoseconds.
void mark_nvtx_ranges(Recorder& recorder, torch::Device device);

} // namespace lockstep::train
