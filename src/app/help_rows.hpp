#pragma once

#include <string>
#include <vector>

namespace lockstep::app {

/// "--name" and what stands for its value, as help shows them, with the meaning.
struct HelpRow {
    std::string name;
    std::string value;
    std::string meaning;
};

/// The options in a help text, which is made from the tables that commands are parsed by.
std::vector<HelpRow> rows_in(std::string const& help);

/// The lines of a text, with the blanks that they begin with.
std::vector<std::string> lines_of(std::string const& text);

} // namespace lockstep::app
