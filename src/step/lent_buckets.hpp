#pragma once

#include "comm/exchange.hpp"

#include <span>
#include <vector>

namespace lockstep::train {

/// The parameters that a rank has on loan from an exchange that lends: those that operators read
/// now, and the bucket that will be read next, which is the neighbour in the direction in which the
/// pass goes through the model. Those that were used the longest time ago go first.
class LentBuckets {
  public:
    /// `exchange` outlives it.
    explicit LentBuckets(comm::Exchange& exchange);

    /// Has these buckets lent, in ascending order; they stay until they have been released as
    /// often.
    ///
    /// Throws  as Exchange::lend
    void use(std::span<int const> buckets);
    void release(std::span<int const> buckets) noexcept;
    /// All have been given back without it.
    void forget() noexcept { held_.clear(); }

  private:
    static constexpr std::size_t kept = 2;

    bool is_held(int bucket) const;
    void hold(int bucket);
    void ask_for_next(std::span<int const> buckets);

    comm::Exchange& exchange_;
    std::vector<int> uses_; ///< by bucket, by operators that run
    std::vector<int> held_; ///< the one used last is the last
    int latest_ = -1;
};

} // namespace lockstep::train
