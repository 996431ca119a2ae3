#pragma once

#include <filesystem>
#include <string>

#include "csv.hpp"

namespace lockstep::import {

/// The set that a folder is, by its name; empty: it is none, but a class.
std::string set_named(std::string const& folder);

/// The file that a row of a table names, and its set there; empty where the table has none.
///
/// Throws  Error 65 that names the line when there is no name, or a folder's where `folders` do not
///         count; or a set that is none
std::filesystem::path listed_file(CsvTable const& table, CsvTable::Row const& row,
                                  std::size_t column, std::filesystem::path const& source,
                                  bool folders = false);
std::string listed_set(CsvTable const& table, CsvTable::Row const& row);

} // namespace lockstep::import
