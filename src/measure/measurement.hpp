#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::measure {

/// What a benchmark found out about one thing, done in one way.
struct Measurement {
    std::string what;        ///< "allreduce", "step cnn"
    std::string variant;     ///< in which way: "mpi", "engine"
    std::uint64_t bytes = 0; ///< of the array that every rank holds
    int ranks = 1;
    std::vector<double> seconds;                         ///< of each repetition; not empty
    std::vector<std::pair<std::string, double>> figures; ///< more keys and their values
};

/// The middle one, or the mean of the two in the middle; `values` is not empty.
double median(std::vector<double> values);

/// One line of JSON, or a few lines for people.
void print(std::ostream& out, Measurement const& measurement, bool json);

} // namespace lockstep::measure
