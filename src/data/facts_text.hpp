#pragma once

#include "lockstep/data/facts.hpp"

#include <string>

namespace lockstep::data {

/// Facts as JSON, and back.
std::string text_of(Facts const& facts);

/// Throws  Error 65, naming `from`, for a text that is none of ours, or as `require_sound`
Facts facts_of_text(std::string const& text, std::string const& from);

/// Throws  Error 65, naming `from`, for shapes, classes, mean or std that no data set has
void require_sound(Facts const& facts, std::string const& from);

/// What a model was trained on, for people: "inputs f32 [3], 2 classes (cat, dog), columns a, b,
/// c".
std::string summary_of(Facts const& facts);

} // namespace lockstep::data
