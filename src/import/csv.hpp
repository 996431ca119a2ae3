#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::import {

/// A table of text. With a tab in its first line it is TSV, whose fields hold neither tabs nor
/// line ends, and in which quotes are letters like others. Else it is CSV (RFC 4180): fields
/// separated by commas, quoted where they hold a comma, a quote or a line's end. The first line
/// names the columns. Blank lines are skipped, but in a table of one column they are empty cells,
/// except at the end.
struct CsvTable {
    std::filesystem::path path;
    std::vector<std::string> columns;
    struct Row {
        std::vector<std::string> fields; ///< as many as there are columns
        std::int64_t line = 0;           ///< in the file, from 1
    };
    std::vector<Row> rows;
    std::vector<std::string> remarks; ///< for the user: odd quotes, blank lines
    struct NamedColumn {
        std::size_t first = 0;
        bool again = false; ///< whether another column has the name, too
    };
    std::map<std::string, NamedColumn> places; ///< of the columns, by name

    std::optional<std::size_t> find(std::string const& column) const;
    /// Throws  Error 65 that names the existing columns; also for a column that occurs twice
    std::size_t column(std::string const& name) const;
    /// The column that an option of the command line names.
    ///
    /// Throws  Error 64 with the option and the existing columns; 65 for a column that occurs twice
    std::size_t column_of(std::string const& option, std::string const& name) const;
    /// Where a value of a row stands, for messages.
    std::string place_of(Row const& row, std::size_t column) const;
};

/// Throws  Error 66 when there is no such file; 65, with the line, when it is not such a table, its
///         first line is only numbers, or other separators than these divide it
CsvTable read_csv(std::filesystem::path const& path);

} // namespace lockstep::import
