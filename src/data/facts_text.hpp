#pragma once

#include "lockstep/data/facts.hpp"

#include <string>

namespace lockstep::data {

/// Facts as JSON, and back.
std::string text_of(Facts const& facts);

/// Throws  Error 65, naming `from`, for a text that is none of ours
Facts facts_of_text(std::string const& text, std::string const& from);

/// What a model was trained on, for people: "inputs f32 [3], 2 classes (cat, dog), columns a, b,
/// c".
std::string summary_of(Facts const& facts);

} // namespace lockstep::data
