#include "device/nvtx.hpp"

#include <torch/csrc/profiler/stubs/base.h>

#include <array>
#include <cstdio>

namespace lockstep::train {

namespace {

/// LibTorch's calls of NVTX, so that no library of its own is needed.
void begin_range(char const* name, std::int64_t number) {
    std::array<char, 64> text{};
    static_cast<void>(number < 0 ? std::snprintf(text.data(), text.size(), "%s", name)
                                 : std::snprintf(text.data(), text.size(), "%s %lld", name,
                                                 static_cast<long long>(number)));
    torch::profiler::impl::cudaStubs()->rangePush(text.data());
}

void end_range() {
    torch::profiler::impl::cudaStubs()->rangePop();
}

constexpr Recorder::Listener nvtx{begin_range, end_range};

} // namespace

void mark_nvtx_ranges(Recorder& recorder, torch::Device device) {
    if (device.is_cuda() && torch::profiler::impl::cudaStubs()->enabled()) {
        recorder.set_listener(&nvtx);
    }
}

} // namespace lockstep::train
