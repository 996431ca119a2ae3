#pragma once

#include "lockstep/base/error.hpp"
#include "lockstep/comm/communicator.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::comm {

/// The status reduction at the end of a collective phase: every rank returns when `work` returned
/// on all of them; otherwise every rank throws the same AgreedError, that of the lowest failing
/// rank. `work` may throw freely, but must not fail on one rank between two collectives of its own.
///
/// Collective  over `comm`; same phase name on all ranks
/// Throws      AgreedError on every rank
void agree(Communicator const& comm, std::string_view phase, std::function<void()> const& work);

/// Only the status reduction, for work that is not a function: `failure` is this rank's error, if
/// it has one.
///
/// Collective  over `comm`
/// Throws      AgreedError on every rank
void agree_on(Communicator const& comm, std::string_view phase,
              std::optional<Error> const& failure);

/// Runs `work` and returns its error, if it has one. Not collective.
[[nodiscard]] std::optional<Error> failure_of(std::function<void()> const& work);

/// "rank 3 (host, device)", for any rank.
///
/// Collective  over `comm`; same rank on all
std::string place_of_rank(Communicator const& comm, int rank);

/// This host's name, according to MPI.
std::string host_name();

} // namespace lockstep::comm
