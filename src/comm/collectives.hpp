#pragma once

#include "lockstep/comm/communicator.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep::comm {

/// A type whose values can be sent as they lie in memory.
template <class T>
concept Element =
    std::same_as<T, std::byte> || std::same_as<T, int> || std::same_as<T, std::int64_t> ||
    std::same_as<T, std::uint64_t> || std::same_as<T, float> || std::same_as<T, double>;

enum class Reduce { sum, minimum, maximum };

/// Copies `values` of rank `root` to all ranks, in calls of at most 1 GiB.
///
/// Collective  same length and root on all ranks
template <Element T>
void broadcast(Communicator const& comm, std::span<T> values, int root = 0);

/// Copies a text of rank `root` to all ranks; what others pass in is replaced.
///
/// Collective  same root on all ranks
void broadcast_text(Communicator const& comm, std::string& text, int root = 0);

/// Reduces element by element over all ranks, in place. Floating-point sums are in MPI's order: use
/// it where each element is non-zero on one rank only, or where the sum need not be exact.
///
/// Collective  same length and operation on all ranks
template <Element T>
void all_reduce(Communicator const& comm, std::span<T> values, Reduce operation);

template <Element T>
T all_reduce(Communicator const& comm, T value, Reduce operation) {
    all_reduce(comm, std::span<T>(&value, 1), operation);
    return value;
}

/// The value of every rank, by rank.
///
/// Collective  over `comm`
template <Element T>
std::vector<T> all_gather(Communicator const& comm, T value);

/// Gathers slices of different length from all ranks into `whole`: rank r's slice is [bounds[r],
/// bounds[r+1]) and must lie there already on rank r.
///
/// Shape       bounds [ranks + 1], the same everywhere; whole [bounds.back()]
/// Collective  over `comm`
/// Throws      Error 70 when a slice exceeds 2^31 - 1 elements
template <Element T>
void all_gather_slices(Communicator const& comm, std::span<T> whole,
                       std::span<std::int64_t const> bounds);

/// One text from every rank, by rank, on rank 0; on the others, nothing. Takes about log2(ranks)
/// rounds; text that successive ranks have in common is sent once.
///
/// Collective  over `comm`
std::vector<std::string> gather_text(Communicator const& comm, std::string const& text);

/// The same, returned on all ranks.
///
/// Collective  over `comm`
std::vector<std::string> all_gather_text(Communicator const& comm, std::string const& text);

/// Adds up `values` over all ranks, in place, in MPI's order, and gives up after a time.
///
/// Collective  over `comm`
/// Throws      Error 76 when it is not done in time
void sum_with_deadline(Communicator const& comm, std::span<double> values, double timeout_seconds);

/// Waits for all ranks, and gives up after a time.
///
/// Collective  over `comm`
/// Throws      Error 76 when they do not arrive in time
void barrier_with_deadline(Communicator const& comm, double timeout_seconds);

/// Copies rank 0's bytes to all ranks, and gives up after a time.
///
/// Collective  over `comm`
/// Throws      Error 76 when it is not done in time
void broadcast_with_deadline(Communicator const& comm, std::span<std::byte> bytes,
                             double timeout_seconds);

/// Waits for all ranks. Each caller must say in a comment which order the wait ensures.
///
/// Collective  over `comm`
void barrier(Communicator const& comm);

/// Whether `condition` holds on every rank.
///
/// Collective  over `comm`
[[nodiscard]] bool all_ranks(Communicator const& comm, bool condition);

} // namespace lockstep::comm
