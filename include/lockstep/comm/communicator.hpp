#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>

namespace lockstep::comm {

class HeartbeatTable;

/// A duplicate of an MPI communicator, with errors returned instead of fatal. Move-only: copying
/// would be a collective call in disguise. Freeing is collective, but a destructor cannot know
/// whether the other ranks come to it: so it only hands MPI's handle to the communicator that this
/// one was made from, and the next collective call that makes another one from there frees it.
/// Destroy on all ranks in the same order.
class Communicator {
  public:
    /// MPI's handle, which only the sources that call MPI know.
    struct Native;

    /// This process alone; no other rank is ever involved. MPI must be initialised. Not collective.
    ///
    /// Throws  Error 69
    static Communicator self();

    /// Duplicates `parent`; for the sources that call MPI.
    ///
    /// Collective  over `parent`
    /// Throws      Error 69
    explicit Communicator(Native parent);

    Communicator(Communicator const&) = delete;
    Communicator& operator=(Communicator const&) = delete;
    Communicator(Communicator&& other) noexcept;
    /// Swaps the two: the old communicator ends with `other`.
    Communicator& operator=(Communicator&& other) noexcept;
    /// Not collective: see above. Of one rank, it is freed at once; if nothing is made from its
    /// parent any more, when MPI ends.
    ~Communicator();

    /// Frees this communicator and those that were made from it, which have ended. For one whose
    /// parent makes no others by a call of all its ranks.
    ///
    /// Collective  over this communicator
    void free() noexcept;

    int rank() const noexcept { return rank_; }
    int size() const noexcept { return size_; }
    bool is_root() const noexcept { return rank_ == 0; }
    /// Not for a communicator that was moved from.
    Native const& native() const noexcept { return *native_; }

    /// The device that this rank computes on, for messages that name a rank: "cpu", "cuda:1".
    std::string const& device() const noexcept { return device_; }
    void set_device(std::string device) { device_ = std::move(device); }

    /// The table in which this rank reports to the ranks of its host what it is doing; null where
    /// nobody watches. Duplicates and parts share it.
    HeartbeatTable const* heartbeats() const noexcept { return heartbeats_.get(); }
    void set_heartbeats(std::shared_ptr<HeartbeatTable const> heartbeats) {
        heartbeats_ = std::move(heartbeats);
    }

    /// The same ranks with a message space of their own.
    ///
    /// Collective  over this communicator
    /// Throws      Error 69
    Communicator duplicate() const;

    /// The ranks that share this rank's memory, that is, its host.
    ///
    /// Collective  over this communicator
    /// Throws      Error 69
    Communicator split_by_host() const;

    /// The ranks that pass the same `group` (0 or more), in this communicator's order.
    ///
    /// Collective  over this communicator
    /// Throws      Error 69
    Communicator split(int group) const;

    /// A communicator of only these ranks, in this order; the other ranks do not take part.
    /// Simultaneous calls whose sets of ranks overlap must pass different tags (0 to 32767).
    ///
    /// Collective  over `ranks`, which must include this rank; same ranks and tag
    /// Throws      Error 69
    Communicator part(std::span<int const> ranks, int tag) const;

  private:
    struct Adopt {};
    class Ended;
    Communicator(Adopt, Native native);
    /// Not collective
    Communicator(Adopt, Native native, Communicator const& parent);

    void free_ended() const noexcept;

    std::unique_ptr<Native> native_;  ///< null where it was moved from
    std::shared_ptr<Ended> ended_;    ///< of those made from this one
    std::shared_ptr<Ended> siblings_; ///< the same of its parent; null: it has none
    int rank_ = 0;
    int size_ = 1;
    std::string device_ = "cpu";
    std::shared_ptr<HeartbeatTable const> heartbeats_;
};

} // namespace lockstep::comm
