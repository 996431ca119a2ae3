#include "csv.hpp"

#include "base/file.hpp"
#include "base/line_ends.hpp"
#include "base/number.hpp"
#include "base/some_of.hpp"
#include "base/suggestion.hpp"
#include "base/text.hpp"
#include "import/source.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>

#include "source_file.hpp"

namespace lockstep::import {

namespace {

constexpr std::size_t max_columns = 50; ///< in an error

/// Takes the fields of one line after the other off a text.
class CsvReader {
  public:
    CsvReader(std::filesystem::path const& path, std::string_view text) : path_(path), text_(text) {
        if (text_.starts_with("\xef\xbb\xbf")) { // a byte order mark
            text_.remove_prefix(3);
        }
        auto const first = text_.substr(0, text_.find('\n'));
        separator_ = first.find('\t') == first.npos ? ',' : '\t';
        for (auto const other : {';', '|'}) {
            if (first.find_first_of(",\t\"") == first.npos && first.find(other) != first.npos) {
                throw Error(ExitCode::data,
                            {concat(path.string(), ", line 1"),
                             concat("a ", other,
                                    " separates the column names, but a table needs "
                                    "commas or tabs"),
                             "Save the table as CSV with commas, and write decimal points in "
                             "numbers"});
            }
        }
    }

    bool at_end() const { return text_.empty(); }
    std::int64_t line() const { return line_; }

    std::vector<std::string> next() {
        std::vector<std::string> fields;
        auto const begin = line_;
        do {
            bool const is_quoted = text_.starts_with('"') && separator_ == ',';
            fields.push_back(is_quoted ? quoted() : plain());
            auto const& field = fields.back();
            bool const keeps_quotes =
                !is_quoted && field.size() > 1 && field.starts_with('"') && field.ends_with('"');
            quotes_kept_.note(keeps_quotes, begin);
            long_fields_.note(field.find('\n') != field.npos, begin);
        } while (take(separator_));
        take('\r');
        if (!at_end() && !take('\n')) {
            refuse(begin, "after the closing quote of a field, there is neither a comma nor the "
                          "end of the line");
        }
        ++line_;
        return fields;
    }

    /// What of the quotes may not be what was meant.
    std::vector<std::string> remarks() const {
        std::vector<std::string> lines;
        if (quotes_kept_.count > 0) {
            lines.push_back(concat("warning: ", path_.string(), ": ",
                                   count_text(quotes_kept_.count, "field"), ", the first on line ",
                                   quotes_kept_.line,
                                   ", begin and end with a quote, which belongs to the value",
                                   separator_ == ',' ? " since a blank is in front of it"
                                                     : " since a table with tabs has no quoting"));
        }
        if (long_fields_.count > 0) {
            lines.push_back(concat("warning: ", path_.string(), ": ",
                                   count_text(long_fields_.count, "quoted field"),
                                   ", the first on line ", long_fields_.line,
                                   ", hold several lines. If these are several rows, a quote in "
                                   "this line is not closed"));
        }
        return lines;
    }

  private:
    struct Found {
        std::int64_t count = 0;
        std::int64_t line = 0; ///< of the first

        void note(bool is_one, std::int64_t at) {
            line = is_one && count == 0 ? at : line;
            count += is_one ? 1 : 0;
        }
    };

    [[noreturn]] void refuse(std::int64_t line, std::string const& why) const {
        throw Error(ExitCode::data, {concat(path_.string(), ", line ", line), why,
                                     "End each quoted field with a quote, put a separator between "
                                     "two fields, and write a quote inside a field twice"});
    }

    bool take(char expected) {
        if (!text_.starts_with(expected)) {
            return false;
        }
        text_.remove_prefix(1);
        return true;
    }

    std::string plain() {
        auto const end = std::min(text_.find(separator_), text_.find('\n'));
        auto field = text_.substr(0, end);
        text_.remove_prefix(field.size());
        return std::string(trimmed(field));
    }

    std::string quoted() {
        std::string field;
        auto const begin = line_;
        take('"');
        for (;;) {
            auto const end = text_.find('"');
            if (end == text_.npos) {
                refuse(begin, "a quote is not closed");
            }
            auto const text = text_.substr(0, end);
            line_ += std::count(text.begin(), text.end(), '\n');
            field += text;
            text_.remove_prefix(end + 1);
            if (!take('"')) {
                return field;
            }
            field += '"';
        }
    }

    std::filesystem::path const& path_;
    std::string_view text_;
    char separator_ = ',';
    std::int64_t line_ = 1;
    Found quotes_kept_;
    Found long_fields_;
};

/// Programs that write every name of a TSV table in quotes would write texts so, too.
void require_bare_names(CsvTable const& table) {
    if (std::all_of(table.columns.begin(), table.columns.end(), [](auto const& name) {
            return name.size() > 1 && name.starts_with('"') && name.ends_with('"');
        })) {
        throw Error(ExitCode::data,
                    {concat(table.path.string(), ", line 1"),
                     concat("the column names have quotes: ", some_of(table.columns, max_columns),
                            ". TSV has no quoting"),
                     "Save the table without quotes, or as CSV with commas"});
    }
}

} // namespace

std::optional<std::size_t> CsvTable::find(std::string const& column) const {
    auto const at = places.find(column);
    return at == places.end() ? std::nullopt : std::optional(at->second.first);
}

std::size_t CsvTable::column(std::string const& name) const {
    auto const found = find(name);
    if (!found) {
        throw Error(ExitCode::data,
                    {path.string(),
                     concat("its first line names the columns ", some_of(columns, max_columns),
                            ", but no column ", name),
                     "Write the name of each column into the first line"});
    }
    if (places.at(name).again) {
        throw Error(ExitCode::data,
                    {path.string(), concat("its first line names the column ", name, " twice"),
                     "Give each column a different name"});
    }
    return *found;
}

std::size_t CsvTable::column_of(std::string const& option, std::string const& name) const {
    if (find(name)) {
        return column(name);
    }
    throw Error(ExitCode::usage, {concat(option, " ", name),
                                  concat(path.string(), " has no such column; its columns are ",
                                         some_of(columns, max_columns)),
                                  suggestion(name, columns, "Name one of these columns")});
}

std::string CsvTable::place_of(Row const& row, std::size_t column) const {
    return concat(path.string(), ", line ", row.line, ", column ", columns[column]);
}

CsvTable read_csv(std::filesystem::path const& path) {
    require_file(path);
    auto const text = read_text(path);
    if (trimmed(text).empty()) {
        throw Error(ExitCode::data, {path.string(), "it is empty",
                                     "Name a table with a header line and data lines"});
    }
    require_text(path, text);
    require_line_ends(path, text, ExitCode::data);
    CsvReader reader(path, text);
    CsvTable table{path, reader.next(), {}, {}, {}};
    require_bare_names(table);
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
        require_stored(table.columns[c],
                       concat(path.string(), ", line 1, the name of column ", c + 1));
        auto const [place, added] = table.places.try_emplace(table.columns[c], c, false);
        place->second.again |= !added;
    }
    if (std::all_of(table.columns.begin(), table.columns.end(),
                    [](auto const& name) { return number_of<double>(name).has_value(); })) {
        throw Error(ExitCode::data, {concat(path.string(), ", line 1"),
                                     concat("it has no column names, only numbers: ",
                                            some_of(table.columns, max_columns)),
                                     "Insert a line with the column names above this line"});
    }
    std::int64_t blank = 0;
    std::size_t blank_at_end = 0;
    while (!reader.at_end()) {
        auto const line = reader.line();
        auto fields = reader.next();
        bool const is_blank = fields.size() == 1 && fields.front().empty();
        blank_at_end = is_blank ? blank_at_end + 1 : 0;
        if (is_blank && table.columns.size() > 1) {
            ++blank;
            continue;
        }
        if (fields.size() != table.columns.size()) {
            throw Error(ExitCode::data, {concat(path.string(), ", line ", line),
                                         concat("it has ", amount_of(fields.size(), "field"),
                                                ", but the first line names ",
                                                amount_of(table.columns.size(), "column")),
                                         "Give this line as many fields as the first line"});
        }
        table.rows.push_back({std::move(fields), line});
    }
    table.remarks = reader.remarks();
    if (table.columns.size() == 1) { // in which a blank line is a row with an empty cell
        table.rows.resize(table.rows.size() - blank_at_end);
        blank = static_cast<std::int64_t>(blank_at_end);
    }
    if (blank > 0) {
        table.remarks.push_back(
            concat(path.string(), ": skipped ", count_text(blank, "blank line")));
    }
    return table;
}

} // namespace lockstep::import
