#include "listed_file.hpp"

#include "base/letter_case.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

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

std::string listed_set(CsvTable const& table, CsvTable::Row const& row) {
    auto const column = table.find("set");
    auto const name = column ? row.fields[*column] : "";
    auto set = set_named(name);
    if (set.empty() && !name.empty()) {
        throw Error(ExitCode::data,
                    {concat(table.path.string(), ", line ", row.line),
                     concat("there is no set named ", name), "Name train, validation or test"});
    }
    return set;
}

} // namespace lockstep::import
