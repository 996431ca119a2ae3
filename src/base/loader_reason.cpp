#include "base/loader_reason.hpp"

#include <dlfcn.h>

namespace lockstep {

std::string loader_reason() {
    auto const* const text = ::dlerror(); // NOLINT(concurrency-mt-unsafe): glibc's is of a thread
    return text == nullptr ? "the dynamic loader gave no reason" : text;
}

} // namespace lockstep
