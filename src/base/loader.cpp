#include "base/loader.hpp"

#include <dlfcn.h>

namespace lockstep {

std::string loader_reason() {
    auto const* const text = ::dlerror(); // NOLINT(concurrency-mt-unsafe): glibc's is of a thread
    return text == nullptr ? "the loader does not say why" : text;
}

} // namespace lockstep
