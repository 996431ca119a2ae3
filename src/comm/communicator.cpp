#include "lockstep/comm/communicator.hpp"

#include "base/code_place.hpp"
#include "base/text.hpp"
#include "comm/heartbeats.hpp"
#include "lockstep/base/error.hpp"

#include <array>
#include <exception>
#include <utility>

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

Communicator::Communicator(Adopt, MPI_Comm handle) : raw_(handle) {
    check(MPI_Comm_set_errhandler(raw_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check(MPI_Comm_rank(raw_, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(raw_, &size_), "MPI_Comm_size");
}

Communicator::Communicator(Adopt, MPI_Comm handle, Communicator const& parent)
    : Communicator(Adopt{}, handle) {
    device_ = parent.device_;
    heartbeats_ = parent.heartbeats_;
}

Communicator::Communicator(MPI_Comm parent)
    : Communicator(Adopt{}, [parent] {
          MPI_Comm copy = MPI_COMM_NULL;
          check(MPI_Comm_dup(parent, &copy), "MPI_Comm_dup");
          return copy;
      }()) {}

Communicator Communicator::self() {
    return Communicator(MPI_COMM_SELF);
}

Communicator::Communicator(Communicator&& other) noexcept
    : raw_(std::exchange(other.raw_, MPI_COMM_NULL)), rank_(other.rank_), size_(other.size_),
      device_(std::move(other.device_)), heartbeats_(std::move(other.heartbeats_)) {}

Communicator& Communicator::operator=(Communicator&& other) noexcept {
    std::swap(raw_, other.raw_);
    std::swap(rank_, other.rank_);
    std::swap(size_, other.size_);
    std::swap(device_, other.device_);
    std::swap(heartbeats_, other.heartbeats_);
    return *this;
}

Communicator::~Communicator() {
    // While an error that was not agreed unwinds this rank the others may never come to free
    // theirs, and freeing waits for them: leave the handle to the end of the process.
    if (raw_ != MPI_COMM_NULL && std::uncaught_exceptions() == 0) {
        WaitScope const wait(*this, Wait::communicator);
        MPI_Comm_free(&raw_);
    }
}

Communicator Communicator::duplicate() const {
    WaitScope const wait(*this, Wait::communicator);
    MPI_Comm copy = MPI_COMM_NULL;
    check(MPI_Comm_dup(raw_, &copy), "MPI_Comm_dup");
    return {Adopt{}, copy, *this};
}

Communicator Communicator::split(int group) const {
    WaitScope const wait(*this, Wait::communicator);
    MPI_Comm part = MPI_COMM_NULL;
    check(MPI_Comm_split(raw_, group, rank_, &part), "MPI_Comm_split");
    return {Adopt{}, part, *this};
}

Communicator Communicator::split_by_host() const {
    WaitScope const wait(*this, Wait::communicator);
    MPI_Comm part = MPI_COMM_NULL;
    check(MPI_Comm_split_type(raw_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &part),
          "MPI_Comm_split_type");
    return {Adopt{}, part, *this};
}

} // namespace lockstep::comm
