#include "given_moments.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace lockstep::import {

void require_given_moments(std::vector<double> const& mean, std::vector<double> const& std,
                           std::vector<std::size_t> const& counts, std::string const& channels) {
    for (auto const& [option, values] : {std::pair("--mean", &mean), std::pair("--std", &std)}) {
        if (values->size() != 1 && std::ranges::find(counts, values->size()) == counts.end()) {
            throw Error(ExitCode::usage,
                        {concat(option, " has ", amount_of(values->size(), "value")), channels,
                         "Give a value for each channel, or one for all"});
        }
        bool const fit = std::ranges::all_of(*values, [&](double value) {
            return std::isfinite(value) && (values == &mean || value > 0);
        });
        if (!fit) {
            throw Error(ExitCode::usage, {concat(option, " has a value that cannot be used"),
                                          "means must be finite, and standard deviations above 0",
                                          "Give the values with which the weights were trained"});
        }
    }
}

} // namespace lockstep::import
