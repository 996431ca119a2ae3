#include "lockstep/comm/communicator.hpp"

#include "base/code_place.hpp"
#include "base/text.hpp"
#include "comm/left_communicators.hpp"
#include "comm/native.hpp"
#include "comm/phase.hpp"
#include "comm/wait_scope.hpp"
#include "lockstep/base/error.hpp"

#include <array>
#include <exception>
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

Communicator::Communicator(Adopt, Native native) : native_(std::make_unique<Native>(native)) {
    MPI_Comm const handle = native.handle;
    check(MPI_Comm_set_errhandler(handle, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check(MPI_Comm_rank(handle, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(handle, &size_), "MPI_Comm_size");
}

Communicator::Communicator(Adopt, Native native, Communicator const& parent)
    : Communicator(Adopt{}, native) {
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
    // While an error that was not agreed unwinds this rank the others may never come to free
    // theirs, and freeing waits for them: leave the handle to the end of the process.
    if (std::uncaught_exceptions() > 0 && size_ > 1) {
        LeftCommunicators::keep(*native_);
        return;
    }
    WaitScope const wait(*this, Wait::communicator);
    MPI_Comm_free(&native_->handle);
}

struct LeftCommunicators::List {
    std::vector<MPI_Comm> handles;
    static thread_local List* current; ///< null: nobody keeps them
};

thread_local LeftCommunicators::List* LeftCommunicators::List::current = nullptr;

LeftCommunicators::LeftCommunicators() : list_(std::make_unique<List>()) {
    List::current = list_.get();
}

LeftCommunicators::~LeftCommunicators() {
    List::current = nullptr;
}

void LeftCommunicators::keep(Communicator::Native const& native) noexcept {
    if (List::current != nullptr) {
        List::current->handles.push_back(native.handle);
    }
}

void LeftCommunicators::free_all() noexcept {
    for (auto& handle : list_->handles) {
        MPI_Comm_free(&handle);
    }
    list_->handles.clear();
}

Communicator Communicator::duplicate() const {
    WaitScope const wait(*this, Wait::communicator);
    Native copy;
    check(MPI_Comm_dup(native_->handle, &copy.handle), "MPI_Comm_dup");
    return {Adopt{}, copy, *this};
}

Communicator Communicator::split(int group) const {
    WaitScope const wait(*this, Wait::communicator);
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
    Native part;
    check(MPI_Comm_split_type(native_->handle, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL,
                              &part.handle),
          "MPI_Comm_split_type");
    return {Adopt{}, part, *this};
}

} // namespace lockstep::comm
