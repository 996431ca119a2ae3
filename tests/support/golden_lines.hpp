#pragma once

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace lockstep::test {

/// The lines of a file in tests/golden, without remarks.
inline std::vector<std::string> golden_lines(std::string const& name) {
    auto const* const directory = std::getenv("LOCKSTEP_GOLDEN");
    std::ifstream file(std::string(directory == nullptr ? "tests/golden" : directory) + "/" + name);
    if (!file) {
        throw std::runtime_error("no golden file " + name);
    }
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) {
        if (!line.empty() && line.front() != '#') {
            lines.push_back(line);
        }
    }
    return lines;
}

/// Numbers with spaces between them.
inline std::vector<double> numbers_of(std::string const& text) {
    std::istringstream words(text);
    std::vector<double> numbers;
    for (std::string word; words >> word;) {
        numbers.push_back(std::stod(word));
    }
    return numbers;
}

inline std::vector<float> floats_of(std::string const& text) {
    auto const numbers = numbers_of(text);
    return {numbers.begin(), numbers.end()};
}

} // namespace lockstep::test
