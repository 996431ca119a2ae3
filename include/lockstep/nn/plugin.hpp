#pragma once

#include "lockstep/build_id_value.hpp"
#include "lockstep/nn/plugin_head.hpp"
#include "lockstep/nn/registry.hpp"

#include <torch/version.h>

/// Defines the models of a library or a program: LOCKSTEP_MODELS(kind, another_kind) with
/// expressions of type lockstep::nn::ModelKind. A deck names them as
/// model.name = plugin:LIBRARY:NAME, or plugin:self:NAME where they are linked into the program.
/// Once per library or program, at namespace scope.
#define LOCKSTEP_MODELS(...) LOCKSTEP_PLUGIN(model, lockstep::nn::ModelKind, __VA_ARGS__)

#define LOCKSTEP_PLUGIN(what, Kind, ...)                                                           \
    static void lockstep_append_##what(std::vector<Kind>& kinds) {                                 \
        std::vector<Kind> const own{__VA_ARGS__};                                                  \
        kinds.insert(kinds.end(), own.begin(), own.end());                                         \
    }                                                                                              \
    extern "C" __attribute__((visibility("default")))                                              \
    lockstep::nn::Plugin<Kind> const lockstep_##what##_plugin{                                     \
        {1, LOCKSTEP_BUILD_ID, TORCH_VERSION}, lockstep_append_##what};
