#include "options.hpp"

#include <charconv>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

namespace lockstep::sim {

namespace {

template <class Number>
Number number_of(std::string_view item, std::string_view value) {
    Number number{};
    auto const [end, error] = std::from_chars(value.begin(), value.end(), number);
    if (error != std::errc{} || end != value.end()) {
        throw std::invalid_argument("LOCKSTEP_SIM: " + std::string(item));
    }
    return number;
}

void set(Options& options, std::string_view item) {
    auto const equals = std::min(item.find('='), item.size());
    auto const key = item.substr(0, equals);
    auto const value = item.substr(std::min(equals + 1, item.size()));
    if (key == "devices") {
        options.devices = number_of<int>(item, value);
    } else if (key == "mib") {
        options.bytes = number_of<std::size_t>(item, value) << 20;
    } else if (key == "delay-us") {
        options.delay_us = number_of<double>(item, value);
    } else if (key == "seed") {
        options.seed = number_of<std::uint64_t>(item, value);
    } else if (key == "drop") {
        options.drop = number_of<std::uint64_t>(item, value);
    } else if (key == "hang") {
        options.hang = number_of<std::uint64_t>(item, value);
    } else if (key == "lose") {
        options.lose = number_of<std::uint64_t>(item, value);
    } else if (key == "counts") {
        options.counts = value;
    } else if (key == "calls") {
        options.calls = value;
    } else if (item == "kernels=off") {
        options.kernels = false;
    } else if (item == "check=throw") {
        options.check = Check::raise;
    } else if (item == "check=report") {
        options.check = Check::report;
    } else if (item == "check=off") {
        options.check = Check::off;
    } else {
        throw std::invalid_argument("LOCKSTEP_SIM: " + std::string(item));
    }
}

} // namespace

Options options_of_environment() {
    Options options;
    char const* const text = std::getenv("LOCKSTEP_SIM");
    std::string_view rest = text == nullptr ? "" : text;
    while (!rest.empty()) {
        auto const item = rest.substr(0, rest.find(','));
        rest.remove_prefix(std::min(item.size() + 1, rest.size()));
        set(options, item);
    }
    return options;
}

} // namespace lockstep::sim
