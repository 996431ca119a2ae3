// What a library of kernels settles on its first use has to be settled before threads compute: MKL
// writes the choice of its vector functions twice, and who comes between takes other kernels.

#include "device/configure_torch.hpp"
#include "lockstep/config/deck.hpp"

#include <torch/utils.h>

#include <atomic>
#include <dlfcn.h>
#include <thread>
#include <vector>

#include "catch.hpp"

namespace {

std::atomic<int> asked{0}; ///< how often MKL has asked for the processor, to choose by it

} // namespace

/// Stands before MKL's own.
extern "C" int mkl_serv_vml_cpu_detect() {
    static auto* const real =
        reinterpret_cast<int (*)()>(::dlsym(RTLD_NEXT, "mkl_serv_vml_cpu_detect"));
    ++asked;
    return real();
}

TEST_CASE("the kernels of vector functions are chosen before threads use them") {
    lockstep::train::configure_torch(lockstep::config::Run{});
    int const before = asked;
    auto const values = torch::linspace(0.1, 0.9, 64);
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread) {
        threads.emplace_back([&values] {
            torch::sqrt(values);
            torch::tanh(values);
            torch::sin(values);
            torch::log(values);
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    CHECK(asked == before);
    if (before == 0) {
        WARN("this LibTorch does not ask by that name: nothing was tested");
    }
}
