#include "lockstep/comm/communicator.hpp"

#include "base/code_place.hpp"
#include "base/text.hpp"
#include "comm/native.hpp"
#include "comm/phase.hpp"
#include "comm/wait_scope.hpp"
#include "lockstep/base/error.hpp"

#include <array>
#include <mutex>
#include <utility>
#include <vector>

namespace lockstep::comm {

void check(int code, std::string_view call, std::source_location at) {
    if (code == MPI_SUCCESS) {
        return;
    }
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int length = 0;
    MPI_Error_string(code, text.data(), &length);
    throw Error(ExitCode::unavailable,
                {concat(call, " failed (", code_place(at), ")"), text.data(),
                 "Check the network and the MPI installation on the hosts of this job"});
}

MPI_Comm raw(Communicator const& comm) noexcept {
    return comm.native().handle;
}

/// Handles of communicators whose owners are gone, in the order in which they went: the same on all
/// ranks. Threads may add at any time.
class Communicator::Ended {
  public:
    explicit Ended(std::shared_ptr<Ended> up) : up_(std::move(up)) {}

    void add(MPI_Comm handle) noexcept {
        std::scoped_lock const lock(mutex_);
        if (!closed_) {
            handles_.push_back(handle);
        } else if (up_) {
            up_->add(handle);
        } // else it ends with MPI
    }
    /// Passes all, and those yet to come, to the parent.
    void close() noexcept {
        for (MPI_Comm const handle : taken(true)) {
            if (up_) {
                up_->add(handle);
            }
        }
    }
    std::vector<MPI_Comm> take() noexcept { return taken(false); }

  private:
    std::vector<MPI_Comm> taken(bool close) noexcept {
        std::scoped_lock const lock(mutex_);
        closed_ = closed_ || close;
        return std::exchange(handles_, {});
    }

    std::mutex mutex_;
    std::vector<MPI_Comm> handles_;
    std::shared_ptr<Ended> up_; ///< null: none
    bool closed_ = false;
};

Communicator::Communicator(Adopt, Native native)
    : native_(std::make_unique<Native>(native)), ended_(std::make_shared<Ended>(nullptr)) {
    MPI_Comm const handle = native.handle;
    check(MPI_Comm_set_errhandler(handle, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check(MPI_Comm_rank(handle, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(handle, &size_), "MPI_Comm_size");
}

Communicator::Communicator(Adopt, Native native, Communicator const& parent)
    : Communicator(Adopt{}, native) {
    ended_ = std::make_shared<Ended>(parent.ended_);
    siblings_ = parent.ended_;
    device_ = parent.device_;
    heartbeats_ = parent.heartbeats_;
}

Communicator::Communicator(Native parent)
    : Communicator(Adopt{}, [parent] {
          Native copy;
          check(MPI_Comm_dup(parent.handle, &copy.handle), "MPI_Comm_dup");
          return copy;
      }()) {}

Communicator Communicator::self() {
    return Communicator(Native{MPI_COMM_SELF});
}

Communicator::Communicator(Communicator&& other) noexcept = default;

Communicator& Communicator::operator=(Communicator&& other) noexcept {
    std::swap(native_, other.native_);
    std::swap(ended_, other.ended_);
    std::swap(siblings_, other.siblings_);
    std::swap(rank_, other.rank_);
    std::swap(size_, other.size_);
    std::swap(device_, other.device_);
    std::swap(heartbeats_, other.heartbeats_);
    return *this;
}

Communicator::~Communicator() {
    if (!native_) {
        return;
    }
    if (size_ == 1) { // so are those that were made from it
        free();
        return;
    }
    ended_->close();
    if (siblings_) {
        siblings_->add(native_->handle);
    }
}

void Communicator::free_ended() const noexcept {
    for (MPI_Comm handle : ended_->take()) {
        MPI_Comm_free(&handle);
    }
}

void Communicator::free() noexcept {
    WaitScope const wait(*this, Wait::communicator);
    free_ended();
    MPI_Comm_free(&native_->handle);
    native_.reset();
}

Communicator Communicator::duplicate() const {
    WaitScope const wait(*this, Wait::communicator);
    free_ended();
    Native copy;
    check(MPI_Comm_dup(native_->handle, &copy.handle), "MPI_Comm_dup");
    return {Adopt{}, copy, *this};
}

Communicator Communicator::split(int group) const {
    WaitScope const wait(*this, Wait::communicator);
    free_ended();
    Native part;
    check(MPI_Comm_split(native_->handle, group, rank_, &part.handle), "MPI_Comm_split");
    return {Adopt{}, part, *this};
}

Communicator Communicator::part(std::span<int const> ranks, int tag) const {
    WaitScope const wait(*this, Wait::communicator);
    MPI_Group all = MPI_GROUP_NULL;
    check(MPI_Comm_group(native_->handle, &all), "MPI_Comm_group");
    MPI_Group some = MPI_GROUP_NULL;
    int const included = MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some);
    MPI_Group_free(&all);
    check(included, "MPI_Group_incl");
    Native part;
    int const created = MPI_Comm_create_group(native_->handle, some, tag, &part.handle);
    MPI_Group_free(&some);
    check(created, "MPI_Comm_create_group");
    return {Adopt{}, part, *this};
}

Communicator Communicator::split_by_host() const {
    WaitScope const wait(*this, Wait::communicator);
    free_ended();
    Native part;
    check(MPI_Comm_split_type(native_->handle, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL,
                              &part.handle),
          "MPI_Comm_split_type");
    return {Adopt{}, part, *this};
}

} // namespace lockstep::comm
