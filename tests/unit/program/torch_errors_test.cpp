// What LibTorch throws, through the function by which every room learns what an exception means.

#include "lockstep/base/error.hpp"

#include <c10/util/Exception.h>

#include <stdexcept>
#include <utility>

#include "catch.hpp"

using namespace lockstep;

namespace {

template <class Exception>
Error told(Exception const& exception) {
    try {
        throw exception;
    } catch (...) {
        return current_error();
    }
}

ExitCode code_of(std::string const& text) {
    return told(std::runtime_error(text)).code();
}

} // namespace

TEST_CASE("a GPU that broke down is a lost rank, a mistake on one is not") {
    CHECK(code_of("CUDA error: uncorrectable ECC error encountered\nCUDA kernel errors might be") ==
          ExitCode::rank_lost);
    CHECK(code_of("HIP error: unspecified launch failure") == ExitCode::rank_lost);
    CHECK(code_of("CUDA error: invalid argument") == ExitCode::software);
    CHECK(code_of("unknown error") == ExitCode::software);
    CHECK(code_of("CUDA error: device-side assert triggered") == ExitCode::usage); // a bad index
    CHECK(code_of("index out of range in self") == ExitCode::usage);
}

TEST_CASE("a full GPU is told with what was needed and what is free") {
    auto const found =
        told(std::runtime_error("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
                                "capacity of 79.10 GiB of which 1.00 GiB is free. Process 7 has"));
    CHECK(found.code() == ExitCode::memory);
    CHECK(found.text().what == "out of device memory");
    CHECK(
        found.text().why ==
        "2.00 GiB were needed; GPU 0 has a total capacity of 79.10 GiB of which 1.00 GiB is free");
    CHECK(found.text().next.find("optimizer.accumulate") != std::string::npos);
}

TEST_CASE("LibTorch's type for memory is enough, whatever the words") {
    c10::SourceLocation const here{__func__, __FILE__, 1};
    auto const device = told(c10::OutOfMemoryError(here, "no more pages"));
    CHECK(device.code() == ExitCode::memory);
    CHECK(device.text().why == "no more pages; the device is full");
    auto const host = told(c10::OutOfMemoryError(
        here, "DefaultCPUAllocator: not enough memory: you tried to allocate 3221225472 bytes."));
    CHECK(host.code() == ExitCode::memory);
    CHECK(std::string(host.what()).starts_with("out of memory: 3.0 GiB were needed; "));
    CHECK(told(c10::Error(here, "no more pages")).code() == ExitCode::software);
}
