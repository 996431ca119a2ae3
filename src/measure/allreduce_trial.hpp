#pragma once

#include "lockstep/comm/communicator.hpp"
#include "measure/measurement.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::measure {

/// The ways in which ranks can sum an array: ordered, as in training; mpi; and copy, which sums
/// nothing and is a lower bound for the others.
std::vector<std::string> allreduce_variants();

/// Measures the sum of an array of floats over all ranks, with the result on all; it is checked at
/// the end. A repetition takes as long as its slowest rank, after a barrier.
///
/// Collective  over `world`
/// Throws      AgreedError 70 for a wrong sum, Error 76 for ranks that do not come
Measurement measure_allreduce(comm::Communicator const& world, std::string const& variant,
                              std::uint64_t bytes, std::int64_t repeats);

/// Seconds of the median of such sums, "ordered", which follow each other as the steps of training
/// do.
///
/// Collective  over `world`
/// Throws      Error 76 for ranks that do not come
double seconds_of_successive_sums(comm::Communicator const& world, std::uint64_t bytes,
                                  std::int64_t repeats);

} // namespace lockstep::measure
