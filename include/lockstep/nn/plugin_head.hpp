#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::nn {

/// What a shared library with models or tasks says of itself: the first member of what its symbol
/// names. These fields never change their places: they are looked at before anything of C++ is
/// passed across.
struct PluginHead {
    std::uint32_t form = 1;              ///< of this struct and of what follows it
    char const* build_id = nullptr;      ///< of the headers that it was compiled with
    char const* torch_version = nullptr; ///< the same of LibTorch's
};

/// A library's kinds of something.
template <class Kind>
struct Plugin {
    PluginHead head;
    void (*append)(std::vector<Kind>& kinds) = nullptr;
};

} // namespace lockstep::nn
