#pragma once

#include <memory>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>

// Open MPI's removed C++ bindings would come in with mpi.h.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

namespace lockstep::comm {

class HeartbeatTable;

/// Throws an `Error` (69) that names the call and says MPI's own text, unless `code` is success.
/// Works because every communicator of ours has MPI_ERRORS_RETURN set.
void check(int code, std::string_view call,
           std::source_location at = std::source_location::current());

/// A duplicate of an MPI communicator, freed when this object dies, with errors returned instead
/// of fatal. Move-only: copying would be a collective call in disguise. `raw()` lends the handle,
/// never gives it away. Freeing is collective: destroy on all ranks in the same order.
class Communicator {
  public:
    /// This process alone; no other rank is ever involved.
    static Communicator self();

    /// Duplicates `parent`.
    ///
    /// Collective  over `parent`
    /// Throws      Error 69
    explicit Communicator(MPI_Comm parent);

    Communicator(Communicator const&) = delete;
    Communicator& operator=(Communicator const&) = delete;
    Communicator(Communicator&& other) noexcept;
    Communicator& operator=(Communicator&& other) noexcept;
    ~Communicator();

    int rank() const noexcept { return rank_; }
    int size() const noexcept { return size_; }
    bool is_root() const noexcept { return rank_ == 0; }
    MPI_Comm raw() const noexcept { return raw_; }

    /// The device that this rank computes on, for messages that name a rank: "cpu", "cuda:1".
    std::string const& device() const noexcept { return device_; }
    void set_device(std::string device) { device_ = std::move(device); }

    /// Where this rank tells its host what it is at; null where nobody watches. Duplicates and
    /// parts have the same.
    HeartbeatTable const* heartbeats() const noexcept { return heartbeats_.get(); }
    void set_heartbeats(std::shared_ptr<HeartbeatTable const> heartbeats) {
        heartbeats_ = std::move(heartbeats);
    }

    /// The same ranks with a message space of their own.
    ///
    /// Collective  over this communicator
    Communicator duplicate() const;

    /// The ranks that share this rank's memory, that is, its host.
    ///
    /// Collective  over this communicator
    Communicator split_by_host() const;

    /// The ranks that pass the same `group`, in this communicator's order.
    ///
    /// Collective  over this communicator
    Communicator split(int group) const;

  private:
    struct Adopt {};
    Communicator(Adopt, MPI_Comm handle);
    /// Not collective
    Communicator(Adopt, MPI_Comm handle, Communicator const& parent);

    MPI_Comm raw_ = MPI_COMM_NULL;
    int rank_ = 0;
    int size_ = 1;
    std::string device_ = "cpu";
    std::shared_ptr<HeartbeatTable const> heartbeats_;
};

} // namespace lockstep::comm
