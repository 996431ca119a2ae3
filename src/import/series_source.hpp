#pragma once

#include "import/source.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::import {

struct SeriesImport {
    std::filesystem::path source{};
    /// The inputs; empty: all that have no other role. COLUMN=NAME is 1 where a column of
    /// categories has this name, and else 0.
    std::vector<std::string> columns{};
    std::vector<std::string> categories{}; ///< columns of names, each of which becomes an input
    std::string time{};      ///< a column of dates or numbers that ascend; empty: none
    std::string group{};     ///< a column: a series for each of its values
    std::string target{};    ///< a column: each row is a sample, and this is its class
    bool regression = false; ///< the target is a number
    std::string split_by{};
    bool doubles = false;      ///< f64 instead of f32
    bool fill_forward = false; ///< an empty cell has the value above it
    bool unlabelled = false;   ///< each row is a sample, which has no target
};

/// A CSV or TSV table. With `target`: inputs [rows, columns], targets [rows]; unlabelled: the
/// inputs alone. Without: a ragged sample [rows, columns] for each group, whose class is its name.
/// A column of categories becomes an input COLUMN=NAME for each of its names. Times are in a
/// dataset `time`, f64, dates as seconds since 1970; the columns' names in an attribute `columns`.
///
/// Throws  Error 66 for a missing source, 65 for a damaged one, 64 for columns or datasets that it
///         does not have
std::unique_ptr<ImportSource> series_source(SeriesImport const& options);

} // namespace lockstep::import
