#pragma once

#include <set>
#include <string>
#include <vector>

namespace lockstep::data {

/// Class names in order: of their numbers where all are whole numbers, else of their bytes.
std::vector<std::string> ordered_names(std::set<std::string> const& names);

/// Checks class names, which appear in records, pictures and other programs.
///
/// `of` comes before what is wrong in the message: the file, where the names come from one.
///
/// Throws  Error 65 for a name that is empty, not UTF-8, has a line break or the like, or occurs
///         twice
void require_names(std::vector<std::string> const& names, std::string const& of = {});

} // namespace lockstep::data
