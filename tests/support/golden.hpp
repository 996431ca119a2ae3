#pragma once

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>

namespace lockstep::test {

/// A file of tests/golden, which LOCKSTEP_GOLDEN names.
inline nlohmann::json golden(std::string const& name) {
    auto const* const directory = std::getenv("LOCKSTEP_GOLDEN");
    std::ifstream file(std::string(directory == nullptr ? "tests/golden" : directory) + "/" + name);
    if (!file) {
        throw std::runtime_error("no " + name + ": set LOCKSTEP_GOLDEN to tests/golden");
    }
    return nlohmann::json::parse(file);
}

} // namespace lockstep::test
