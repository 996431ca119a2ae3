#include "base/arguments.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>

namespace lockstep {

std::string take_option(std::vector<std::string>& arguments, std::string const& name,
                        std::string const& otherwise) {
    auto value = otherwise;
    for (auto at = arguments.begin(); at != arguments.end();) {
        if (at->starts_with(name + "=")) {
            value = at->substr(name.size() + 1);
            at = arguments.erase(at);
        } else if (*at == name) {
            if (std::next(at) == arguments.end()) {
                throw Error(ExitCode::usage, {concat("option ", name), "its value is missing",
                                              concat("Write ", name, " VALUE")});
            }
            value = *std::next(at);
            at = arguments.erase(at, at + 2);
        } else {
            ++at;
        }
    }
    return value;
}

bool take_flag(std::vector<std::string>& arguments, std::string const& name) {
    return std::erase(arguments, name) > 0;
}

void require_one_of(std::string const& option, std::string const& value,
                    std::vector<std::string> const& names) {
    if (std::find(names.begin(), names.end(), value) == names.end()) {
        throw Error(ExitCode::usage, {concat(option, " ", value), "there is no such one",
                                      concat("There are ", joined(names, ", "))});
    }
}

void expect_arguments(std::vector<std::string> const& arguments, std::size_t least,
                      std::size_t most, std::string const& usage) {
    for (auto const& argument : arguments) {
        if (argument.starts_with("--")) {
            throw Error(ExitCode::usage,
                        {concat("unknown option ", argument), "the command has no such option",
                         concat("Usage: ", usage)});
        }
    }
    if (arguments.size() < least || arguments.size() > most) {
        throw Error(ExitCode::usage,
                    {concat(arguments.size(), arguments.size() == 1 ? " argument" : " arguments"),
                     arguments.size() < least ? "something is missing" : "there are too many",
                     concat("Usage: ", usage)});
    }
}

} // namespace lockstep
