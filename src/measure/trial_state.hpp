#pragma once

#include "checkpoint/snapshot.hpp"
#include "lockstep/comm/communicator.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::measure {

/// A training state like AdamW's, of which each rank holds a slice.
class TrialState {
  public:
    /// The names of its arrays: parameters and two moments.
    static constexpr std::array<char const*, 3> names{"state/parameters", "state/exp_avg",
                                                      "state/exp_avg_sq"};

    TrialState(comm::Communicator const& world, std::uint64_t bytes);

    checkpoint::Snapshot snapshot() const;
    std::span<std::byte const> bytes() const { return std::as_bytes(std::span(values_)); }
    std::uint64_t whole_bytes() const { return elements_ * sizeof(float) * names.size(); }
    std::uint64_t first_byte() const { return first_ * sizeof(float) * names.size(); }
    std::uint64_t first() const { return first_; }

  private:
    std::uint64_t elements_;
    std::uint64_t first_; ///< of each array
    std::uint64_t slice_;
    std::vector<float> values_;
};

} // namespace lockstep::measure
