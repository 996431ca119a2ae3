#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::nn {

/// How a shared library with models or tasks identifies itself: the first member of the object that
/// its symbol names. The layout of these fields never changes: they are read before any C++ object
/// is passed between library and program.
struct PluginHead {
    std::uint32_t form = 1;              ///< of this struct and of what follows it
    char const* build_id = nullptr;      ///< of the headers that it was compiled with
    char const* torch_version = nullptr; ///< the same for LibTorch
};

/// A library's models or tasks.
template <class Kind>
struct Plugin {
    PluginHead head;
    void (*append)(std::vector<Kind>& kinds) = nullptr;
};

} // namespace lockstep::nn
