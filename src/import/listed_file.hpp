#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include "csv.hpp"

namespace lockstep::import {

/// The set that a folder's name stands for; empty: the folder is a class instead.
std::string set_named(std::string const& folder);

/// The column of a table that names sets: `set`; or else `split`, as many data sets have it, if it
/// holds no other values, and the table is not divided by it (`--split-by`).
struct SetColumn {
    SetColumn(CsvTable const& table, std::string const& split_by);

    std::optional<std::size_t> column;
    std::string remark; ///< on a column `split`; empty: there is none
};

/// The file that a row of a table names, and its set; the set is empty where the table has none.
///
/// Throws  Error 65 that names the line when there is no name, or it is a folder's where `folders`
///         do not count; or the set is invalid
std::filesystem::path listed_file(CsvTable const& table, CsvTable::Row const& row,
                                  std::size_t column, std::filesystem::path const& source,
                                  bool folders = false);
std::string listed_set(CsvTable const& table, CsvTable::Row const& row, SetColumn const& sets);

} // namespace lockstep::import
