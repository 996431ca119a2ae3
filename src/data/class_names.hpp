#pragma once

#include <set>
#include <string>
#include <vector>

namespace lockstep::data {

/// Class names in order: of their numbers where all are whole numbers, else of their bytes.
std::vector<std::string> ordered_names(std::set<std::string> const& names);

/// Checks the name of a class, which `number` names in the message: the class, or the line of a
/// file.
///
/// Throws  Error 65 for a name that is empty, not UTF-8, or has a line break or the like
void require_name(std::string const& name, std::string const& number);

/// Checks class names, which appear in records, pictures and other programs.
///
/// `of` comes before what is wrong in the message: the file, where the names come from one.
///
/// Throws  Error 65 as `require_name`, or for a name that occurs twice
void require_names(std::vector<std::string> const& names, std::string const& of = {});

} // namespace lockstep::data
