#pragma once

#include "comm/tree_exchange.hpp"
#include "lockstep/comm/communicator.hpp"

#include <cstdint>
#include <memory>
#include <vector>

#include "hosts.hpp"
#include "pending.hpp"

namespace lockstep::comm {

/// What a rank sends to other hosts in a step, and gets from them: partials of shards, each to the
/// shard's owner, in 16 bits where sums are rounded; and whole shards, from their owners to all
/// hosts.
class HostMessages {
  public:
    /// What it is made of; all but `arena` and `rank` must outlive it.
    struct Parts {
        Communicator const* world; ///< nobody else's messages; null: one host, nothing to send
        TreeExchangeOptions const& options;
        Hosts const& hosts;
        std::vector<Partial> const& partials;
        std::shared_ptr<void const> arena; ///< keeps the memory of what is sent
        int rank;
    };
    explicit HostMessages(Parts const& parts);

    /// Where partial `which`, of another host, has this rank's shard of `bucket` after `unpack`.
    float const* received(int bucket, std::size_t which) const {
        return incoming_[static_cast<std::size_t>(bucket)][which];
    }

    /// Awaits the partials of a step; no earlier one is needed any more.
    void begin();
    /// Whether all partials of a bucket are there; does not wait.
    bool arrived(int bucket) { return receives_[static_cast<std::size_t>(bucket)].done(); }
    void unpack(int bucket);
    /// Sends a partial's shard to its owner. `values` stay as they are until `wait_sent`, unless
    /// sums are rounded.
    ///
    /// Returns  the bytes that travel
    std::int64_t send(int owner, float const* values, std::int64_t count);
    /// Throws  Error 76 when what was sent has not left in time
    void wait_sent();

    /// Sends the own shards of an array to the other hosts, each to the rank that takes them there,
    /// and receives theirs.
    ///
    /// Returns  the bytes that travel from here
    /// Throws   Error 76 when they do not come in time
    std::int64_t spread(float* array);

    /// Calls action(owner, bucket) for all shards of other hosts that this rank takes on its own.
    template <class Action>
    void for_each_taken(Action const& action) const {
        for (int bucket = 0; bucket < partition_.buckets(); ++bucket) {
            for (int owner = 0; owner < partition_.ranks(); ++owner) {
                if (hosts_.host(owner) != host_ && hosts_.delegate(host_, owner) == rank_) {
                    action(owner, bucket);
                }
            }
        }
    }

  private:
    /// What MPI may read and write while messages are under way.
    struct Buffers {
        std::shared_ptr<void const> arena;
        std::vector<float> received; ///< partials of other hosts for the own shards, by bucket
        std::vector<std::uint16_t> packed_received{}; ///< the same, as they come; where rounded
        std::vector<std::uint16_t> packed_sent{};     ///< stays until the step is finished
    };

    bool rounds() const { return rounding_ != Rounding::none; }
    std::uint16_t* packed(float const* received);
    std::int64_t elements_received() const;
    std::int64_t elements_sent() const;

    Communicator const* world_;
    Partition const& partition_;
    Hosts const& hosts_;
    std::vector<Partial> const& partials_;
    int rank_;
    int host_;
    Rounding rounding_;
    double timeout_seconds_;
    std::shared_ptr<Buffers> buffers_;
    std::int64_t packed_until_ = 0;
    std::vector<std::vector<float*>> incoming_; ///< [buckets, partials]; null: of this host
    std::vector<Pending> receives_;             ///< of each bucket
    Pending sends_;
};

} // namespace lockstep::comm
