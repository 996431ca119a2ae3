#include "kind_listing.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <iostream>
#include <regex>
#include <sstream>

#include "commands.hpp"
#include "help_rows.hpp"

namespace lockstep::app {

namespace {

/// What `lockstep models` or `lockstep tasks` prints.
std::string listing(std::string const& what) {
    std::stringbuf text;
    auto* const before = std::cout.rdbuf(&text);
    try {
        static_cast<void>(train_side_command(what, {}));
    } catch (...) {
        std::cout.rdbuf(before);
        throw;
    }
    std::cout.rdbuf(before);
    return text.str();
}

} // namespace

std::vector<Candidate> kinds_of(std::string const& what) {
    static std::regex const head("^([a-z0-9-]+): (.*)$");
    std::vector<Candidate> kinds;
    for (auto const& line : lines_of(listing(what))) {
        if (std::smatch found; std::regex_match(line, found, head)) {
            kinds.push_back({found[1], found[2]});
        }
    }
    return kinds;
}

std::vector<Candidate> own_keys(std::string const& what, std::string const& named) {
    static std::regex const key("^    ([a-z]+\\.[a-z0-9-]+) \\(.*?\\)  (.*)$");
    std::vector<Candidate> keys;
    bool counts = true;
    for (auto const& line : lines_of(listing(what))) {
        std::smatch found;
        if (!line.starts_with(" ")) {
            counts = named.empty() || line.starts_with(named + ":");
        } else if (counts && std::regex_match(line, found, key)) {
            auto const name = concat("--", found[1].str());
            bool const known = std::ranges::find(keys, name, &Candidate::text) != keys.end();
            if (!known) {
                keys.push_back({name, found[2]});
            }
        }
    }
    return keys;
}

} // namespace lockstep::app
