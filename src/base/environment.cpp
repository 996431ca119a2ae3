#include "base/environment.hpp"

#include <cstdlib>

namespace lockstep {

std::optional<std::string> environment(char const* name) {
    char const* const value = std::getenv(name); // NOLINT(concurrency-mt-unsafe)
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

void set_environment(char const* name, std::string const& value) {
    ::setenv(name, value.c_str(), /*overwrite=*/0); // NOLINT(concurrency-mt-unsafe)
}

std::string environment_text(char const* name) {
    return environment(name).value_or("");
}

} // namespace lockstep
