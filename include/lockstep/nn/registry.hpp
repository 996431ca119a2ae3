#pragma once

#include "lockstep/config/own_keys.hpp"
#include "lockstep/nn/model.hpp"

#include <functional>

namespace lockstep::nn {

/// A model that a deck can name.
struct ModelKind {
    std::string name;
    std::string meaning;
    std::vector<config::OwnKey> keys;
    /// Throws  Error 64 for a value of a key, or a shape, that the model cannot have
    std::function<std::shared_ptr<Model>(config::OwnValues const&, Interface const&)> make;
    /// How many parameters it would have, without making it. Throws  as `make`
    std::function<double(config::OwnValues const&, Interface const&)> parameters;
    bool any_inputs = false; ///< accepts several inputs, whole numbers and ragged ones
};

/// All models, by name.
std::vector<ModelKind> model_kinds();

/// Throws  Error 64 when the deck names a model that does not exist, or a key that it does not
///         have; 66 or 69 for a plug-in that is missing or cannot be loaded
void require_known(config::Model const& chosen);

/// How many parameters the deck's model has. A double, since absurd values may lead to more than an
/// integer can hold. The model is not built.
///
/// Throws  Error 64 to 69 as `make_model` does
double parameter_count(config::Model const& chosen, Interface const& interface);

/// The deck's model, initialised from the seed only: the same bits wherever it is made. Not
/// collective; it seeds LibTorch's generator.
///
/// Throws  Error 64 when the deck names a model that does not exist, a key it does not have, or a
///         shape that it cannot take; 65 when the model takes one input of real values and the data
///         has other inputs; 66 or 69 for a plug-in that is missing or cannot be loaded
std::shared_ptr<Model> make_model(config::Model const& chosen, Interface const& interface,
                                  std::uint64_t seed);

} // namespace lockstep::nn
