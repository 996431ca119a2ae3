#pragma once

#include <set>
#include <string>
#include <vector>

namespace lockstep::data {

/// Class names in order: of their numbers where all are whole numbers, else of their bytes.
std::vector<std::string> ordered_names(std::set<std::string> const& names);

/// Names are told in records, pictures and other programs.
///
/// `of` is said before what is wrong: the file, where one names them.
///
/// Throws  Error 65 for one that is empty, not UTF-8, has a line's end or its like, or is there
///         twice
void require_names(std::vector<std::string> const& names, std::string const& of = {});

} // namespace lockstep::data
