#pragma once

#include "lockstep/data/batch.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace lockstep::nn {

/// What to do where a model does not fit: which of ours gives an output for each sample of so many
/// dimensions; those of ragged samples count their rows.
std::string advised_model(std::size_t dimensions, bool ragged, bool whole);

/// The same of models with an output for each position.
std::string advised_model_of_places(std::size_t dimensions);

/// What is learnt from: "dataset inputs holds real values of shape [3, 8, 8]".
std::string text_of(std::vector<data::FieldInfo> const& inputs);
/// As `advised_model`.
std::string advised_model(std::vector<data::FieldInfo> const& inputs);

} // namespace lockstep::nn
