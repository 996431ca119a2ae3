#pragma once

#include "h5/file.hpp"
#include "lockstep/data/facts.hpp"

#include <string>
#include <vector>

#include "source_field.hpp"

namespace lockstep::import {

/// Adds to what a file says of its samples what only the files say that its datasets lead to, as
/// views or links: the lists of classes and columns, and the sample rate, where all of them agree.
///
/// Throws   Error 65 or 66 for a file that cannot be opened
/// Returns  lines for the user: what was added, and a warning of what was not
std::vector<std::string> add_facts_behind(h5::File const& file, SourceField const& inputs,
                                          SourceField const& target, data::Facts& facts);

} // namespace lockstep::import
