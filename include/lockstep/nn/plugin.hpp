#pragma once

#include "lockstep/build_id_value.hpp"
#include "lockstep/nn/registry.hpp"

#include <torch/version.h>

#include <vector>

namespace lockstep::nn {

/// What a shared library with models says of itself. Its first fields never change their places:
/// they are looked at before anything of C++ is passed across.
struct ModelPlugin {
    std::uint32_t form = 1;              ///< of this struct
    char const* build_id = nullptr;      ///< of the headers that it was compiled with
    char const* torch_version = nullptr; ///< the same of LibTorch's
    void (*append)(std::vector<ModelKind>& kinds) = nullptr;
};

/// The symbol that a library, or the program itself, shows.
inline constexpr char const* model_plugin_symbol = "lockstep_model_plugin";

/// Defines the plug-in of a library or a program: LOCKSTEP_MODELS(kind, another_kind) with
/// expressions of type lockstep::nn::ModelKind. A deck names them as
/// model.name = plugin:LIBRARY:NAME, or plugin:self:NAME where they are linked into the program.
#define LOCKSTEP_MODELS(...)                                                                       \
    static void lockstep_append_models(std::vector<lockstep::nn::ModelKind>& kinds) {              \
        std::vector<lockstep::nn::ModelKind> const own{__VA_ARGS__};                               \
        kinds.insert(kinds.end(), own.begin(), own.end());                                         \
    }                                                                                              \
    extern "C" __attribute__((visibility("default")))                                              \
    lockstep::nn::ModelPlugin const lockstep_model_plugin{1, LOCKSTEP_BUILD_ID, TORCH_VERSION,     \
                                                          lockstep_append_models};

} // namespace lockstep::nn
