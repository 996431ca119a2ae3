#pragma once

#include "lockstep/nn/registry.hpp"

namespace lockstep::test {

/// A model of two layers, whose sizes are no multiples of anything.
inline std::shared_ptr<nn::Model> small_model() {
    config::Model const chosen{"mlp", {{"hidden", "170, 33"}}};
    return nn::make_model(chosen, {{5, 31}, 10}, 3);
}

} // namespace lockstep::test
