#include "base/start_limit.hpp"

#include "base/environment.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <initializer_list>
#include <optional>

namespace lockstep {

namespace {

constexpr char const* start_variable = "LOCKSTEP_START_SECONDS";
constexpr double max_start_s = 1'000'000;

/// What the variable says; nothing where it says nothing that can be.
std::optional<double> start_limit() {
    auto const seconds = environment_number<double>(start_variable);
    return seconds && *seconds > 0 && *seconds <= max_start_s ? seconds : std::nullopt;
}

} // namespace

double start_limit_s(double otherwise) {
    return start_limit().value_or(otherwise);
}

void require_start_limit() {
    auto const text = environment_text(start_variable);
    if (!text.empty() && !start_limit()) {
        throw Error(ExitCode::usage,
                    {concat(start_variable, " = ", text),
                     concat("expected a number of seconds above 0, up to ", max_start_s),
                     "Correct this variable, or unset the variable"});
    }
}

} // namespace lockstep
