#include "listed_file.hpp"

#include "base/letter_case.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <map>

namespace lockstep::import {

std::string set_named(std::string const& folder) {
    static std::map<std::string, std::string> const sets{
        {"train", "train"},      {"training", "train"}, {"validation", "validation"},
        {"valid", "validation"}, {"val", "validation"}, {"dev", "validation"},
        {"test", "test"},        {"testing", "test"}};
    auto const found = sets.find(lower_case(folder));
    return found == sets.end() ? "" : found->second;
}

std::filesystem::path listed_file(CsvTable const& table, CsvTable::Row const& row,
                                  std::size_t column, std::filesystem::path const& source,
                                  bool folders) {
    auto const& name = row.fields[column];
    auto path = source / name;
    std::error_code missing; // that is told when it is read
    if (name.empty() || (!folders && std::filesystem::is_directory(path, missing))) {
        throw Error(ExitCode::data, {concat(table.path.string(), ", line ", row.line),
                                     name.empty() ? concat("the value in column ",
                                                           table.columns[column], " is empty")
                                                  : concat(path.string(), " is a directory"),
                                     "Write the path of a file into this line"});
    }
    return path;
}

SetColumn::SetColumn(CsvTable const& table, std::string const& split_by)
    : column(table.find("set")) {
    auto const alias = column || split_by == "split" ? std::nullopt : table.find("split");
    if (!alias) {
        return;
    }
    auto const other = std::ranges::find_if(table.rows, [&](CsvTable::Row const& row) {
        return !row.fields[*alias].empty() && set_named(row.fields[*alias]).empty();
    });
    if (other == table.rows.end()) {
        column = alias;
        remark = "the sets are those of column split";
    } else {
        remark = concat("column split is not used, since ", other->fields[*alias], " on line ",
                        other->line, " is none of the sets train, validation and test");
    }
}

std::string listed_set(CsvTable const& table, CsvTable::Row const& row, SetColumn const& sets) {
    auto const name = sets.column ? row.fields[*sets.column] : "";
    auto set = set_named(name);
    if (set.empty() && !name.empty()) {
        throw Error(ExitCode::data,
                    {concat(table.path.string(), ", line ", row.line),
                     concat("there is no set named ", name), "Name train, validation or test"});
    }
    return set;
}

} // namespace lockstep::import
