#include "help_rows.hpp"

#include <regex>
#include <sstream>

namespace lockstep::app {

std::vector<std::string> lines_of(std::string const& text) {
    std::istringstream in(text);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) {
        lines.push_back(line);
    }
    return lines;
}

std::vector<HelpRow> rows_in(std::string const& help) {
    static std::regex const head("^ {2,12}(--[a-z][a-z-]*(?:\\.key)?)(?: ([^ ]+))?(?:  +(.*))?$");
    static std::regex const rest("^ {13,}(.*)$");
    std::vector<HelpRow> rows;
    bool follows = false;
    for (auto const& line : lines_of(help)) {
        std::smatch found;
        if (std::regex_match(line, found, head)) {
            rows.push_back({found[1], found[2], found[3]});
            follows = true;
        } else if (follows && std::regex_match(line, found, rest)) {
            rows.back().meaning += (rows.back().meaning.empty() ? "" : " ") + found[1].str();
        } else {
            follows = false;
        }
    }
    return rows;
}

} // namespace lockstep::app
