#include "data/class_names.hpp"

#include "base/text.hpp"
#include "base/utf8.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cctype>

namespace lockstep::data {

std::vector<std::string> ordered_names(std::set<std::string> const& names) {
    std::vector<std::string> ordered(names.begin(), names.end());
    bool const numbers = std::all_of(ordered.begin(), ordered.end(), [](std::string const& name) {
        return !name.empty() && name.size() < 10 &&
               std::all_of(name.begin(), name.end(),
                           [](unsigned char c) { return std::isdigit(c) != 0; });
    });
    if (numbers) {
        std::sort(ordered.begin(), ordered.end(), [](std::string const& a, std::string const& b) {
            return std::pair(std::stol(a), a) < std::pair(std::stol(b), b);
        });
    }
    return ordered;
}

namespace {

[[noreturn]] void refuse(std::string const& what, std::string const& why) {
    throw Error(ExitCode::data,
                {what, why, "Give each class a name of its own, without control characters"});
}

} // namespace

void require_name(std::string const& name, std::string const& number) {
    auto const points = decoded(name, number);
    if (name.empty()) {
        refuse(number, "its name is empty");
    }
    if (std::any_of(points.begin(), points.end(),
                    [](char32_t point) { return point < U' ' || point == U'\x7f'; })) {
        refuse(number, "its name has a line break, a tab or another control character");
    }
}

void require_names(std::vector<std::string> const& names, std::string const& of) {
    std::set<std::string> seen;
    for (std::size_t i = 0; i < names.size(); ++i) {
        auto const number = concat(of, "class ", i); // alone, as long as the name may be no line
        require_name(names[i], number);
        if (!seen.insert(names[i]).second) {
            refuse(concat(number, ", \"", names[i], "\""), "another class has this name");
        }
    }
}

} // namespace lockstep::data
