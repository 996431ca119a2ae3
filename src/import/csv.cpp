#include "csv.hpp"

#include "base/file.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>

#include "source_file.hpp"

namespace lockstep::import {

namespace {

/// Takes the fields of one line after the other off a text.
class CsvReader {
  public:
    CsvReader(std::filesystem::path const& path, std::string_view text) : path_(path), text_(text) {
        if (text_.starts_with("\xef\xbb\xbf")) { // a byte order mark
            text_.remove_prefix(3);
        }
        separator_ = text_.substr(0, text_.find('\n')).find('\t') == text_.npos ? ',' : '\t';
    }

    bool at_end() const { return text_.empty(); }
    std::int64_t line() const { return line_; }

    std::vector<std::string> next() {
        std::vector<std::string> fields;
        do {
            fields.push_back(text_.starts_with('"') ? quoted() : plain());
        } while (take(separator_));
        take('\r');
        if (!at_end() && !take('\n')) {
            refuse("a quoted field is not followed by a separator");
        }
        ++line_;
        return fields;
    }

    [[noreturn]] void refuse(std::string const& why) const {
        throw Error(ExitCode::data, {concat(path_.string(), ", line ", line_), why,
                                     "End each quoted field with a quote, put a separator between "
                                     "two fields, and write a quote inside a field twice"});
    }

  private:
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
        take('"');
        for (;;) {
            auto const end = text_.find('"');
            if (end == text_.npos) {
                refuse("a quote is not closed");
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
};

} // namespace

std::optional<std::size_t> CsvTable::find(std::string const& column) const {
    auto const at = std::find(columns.begin(), columns.end(), column);
    if (at == columns.end()) {
        return std::nullopt;
    }
    return static_cast<std::size_t>(at - columns.begin());
}

std::size_t CsvTable::column(std::string const& name) const {
    auto const found = find(name);
    if (!found) {
        throw Error(ExitCode::data, {path.string(),
                                     concat("its first line names the columns ",
                                            joined(columns, ", "), ", but no column ", name),
                                     "Write the name of each column into the first line"});
    }
    if (std::count(columns.begin(), columns.end(), name) > 1) {
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
    auto const near = nearest_name(name, columns);
    throw Error(
        ExitCode::usage,
        {concat(option, " ", name),
         concat(path.string(), " has no such column; its columns are ", joined(columns, ", ")),
         near.empty() ? "Name one of these columns" : concat("Did you mean ", near, "?")});
}

CsvTable read_csv(std::filesystem::path const& path) {
    require_file(path);
    auto const text = read_text(path);
    CsvReader reader(path, text);
    CsvTable table{path, reader.next(), {}};
    if (std::all_of(table.columns.begin(), table.columns.end(),
                    [](auto const& name) { return number_of<double>(name).has_value(); })) {
        throw Error(ExitCode::data,
                    {concat(path.string(), ", line 1"),
                     concat("it has no column names, only numbers: ", joined(table.columns, ", ")),
                     "Insert a line with the column names above this line"});
    }
    while (!reader.at_end()) {
        auto const line = reader.line();
        auto fields = reader.next();
        if (fields.size() == 1 && fields.front().empty()) {
            continue; // an empty line
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
    return table;
}

} // namespace lockstep::import
