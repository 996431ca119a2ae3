#include "pending.hpp"

#include "base/text.hpp"
#include "comm/native.hpp"
#include "comm/phase.hpp"
#include "comm/wait_scope.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "counts.hpp"

namespace lockstep::comm {

namespace {

// Messages of at most this many elements, far below MPI's limit.
constexpr std::int64_t max_elements = std::int64_t{1} << 28;

int test_all(std::vector<MPI_Request>& requests, int& done) {
    done = 1;
    return requests.empty() ? MPI_SUCCESS
                            : MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done,
                                          MPI_STATUSES_IGNORE);
}

bool all_done(std::vector<MPI_Request>& requests) {
    int done = 0;
    check(test_all(requests, done), "MPI_Testall");
    if (done != 0) {
        requests.clear();
    }
    return done != 0;
}

/// A copy that outlives whoever gives up waiting for it.
template <class T>
std::shared_ptr<std::vector<T>> copy_of(std::span<T const> values) {
    return std::make_shared<std::vector<T>>(values.begin(), values.end());
}

} // namespace

Backoff::Backoff(double seconds, std::string what, double longest_pause_s)
    : seconds_(seconds), what_(std::move(what)), longest_pause_s_(longest_pause_s) {}

void Backoff::pause() {
    auto const waited = clock_.seconds();
    if (waited > seconds_) {
        throw Error(
            ExitCode::rank_lost,
            {concat("waited ", fixed(seconds_, 0), " s for ", what_),
             "a rank is dead, stopped, or far slower than the others, or the network has failed",
             "Look at the other hosts. If a rank is only slow, raise "
             "communication.timeout-seconds"});
    }
    if (waited < 1e-3) {
        std::this_thread::yield();
    } else {
        std::this_thread::sleep_for(std::chrono::duration<double>(
            std::clamp(waited / 100, shortest_pause_s, longest_pause_s_)));
    }
}

/// The requests, and what MPI reads and writes meanwhile.
struct Pending::UnderWay {
    std::shared_ptr<void const> memory;
    std::vector<std::unique_ptr<std::vector<int>>> counts{}; ///< of what is gathered
    std::vector<MPI_Request> requests{};
};

Pending::Pending(std::shared_ptr<void const> memory)
    : under_way_(std::make_unique<UnderWay>(UnderWay{std::move(memory)})) {}

Pending::Pending(Pending&& other) noexcept = default;

Pending::~Pending() {
    if (!under_way_) {
        return;
    }
    int done = 0;
    bool const settled = test_all(under_way_->requests, done) == MPI_SUCCESS && done != 0;
    if (!settled) { // MPI cannot take them back
        static_cast<void>(under_way_.release());
    }
}

template <Element T>
void Pending::sum(Communicator const& comm, std::span<T> values) {
    in_parts(std::ssize(values), max_elements, [&](std::int64_t first, int length) {
        check(MPI_Iallreduce(MPI_IN_PLACE, values.data() + first, length, datatype<T>(), MPI_SUM,
                             raw(comm), &under_way_->requests.emplace_back(MPI_REQUEST_NULL)),
              "MPI_Iallreduce");
    });
}

template void Pending::sum(Communicator const&, std::span<float>);
template void Pending::sum(Communicator const&, std::span<double>);

void Pending::minimum(Communicator const& comm, double& value) {
    check(MPI_Iallreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MIN, raw(comm),
                         &under_way_->requests.emplace_back(MPI_REQUEST_NULL)),
          "MPI_Iallreduce");
}

void Pending::gather(Communicator const& comm, float* whole,
                     std::vector<std::int64_t> const& bounds) {
    auto& begins = *under_way_->counts.emplace_back(std::make_unique<std::vector<int>>());
    auto& counts = *under_way_->counts.emplace_back(std::make_unique<std::vector<int>>());
    for (std::size_t rank = 0; rank + 1 < bounds.size(); ++rank) {
        begins.push_back(mpi_count(bounds[rank]));
        counts.push_back(mpi_count(bounds[rank + 1] - bounds[rank]));
    }
    check(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_FLOAT, whole, counts.data(), begins.data(),
                          MPI_FLOAT, raw(comm),
                          &under_way_->requests.emplace_back(MPI_REQUEST_NULL)),
          "MPI_Iallgatherv");
}

void Pending::broadcast(Communicator const& comm, std::span<std::byte> bytes) {
    in_parts(std::ssize(bytes), max_elements, [&](std::int64_t first, int length) {
        check(MPI_Ibcast(bytes.data() + first, length, MPI_BYTE, 0, raw(comm),
                         &under_way_->requests.emplace_back(MPI_REQUEST_NULL)),
              "MPI_Ibcast");
    });
}

void Pending::barrier(Communicator const& comm) {
    check(MPI_Ibarrier(raw(comm), &under_way_->requests.emplace_back(MPI_REQUEST_NULL)),
          "MPI_Ibarrier");
}

bool Pending::done() {
    return all_done(under_way_->requests);
}

void Pending::wait(double timeout_seconds, std::string const& what) {
    Backoff backoff(timeout_seconds, what);
    while (!done()) {
        backoff.pause();
    }
    under_way_->counts.clear();
}

void sum_with_deadline(Communicator const& comm, std::span<double> values, double timeout_seconds) {
    WaitScope const wait(comm, Wait::all_reduce);
    auto const copy = copy_of(std::span<double const>(values));
    Pending pending(copy);
    pending.sum(comm, std::span(*copy));
    pending.wait(timeout_seconds, "the status reduction");
    std::ranges::copy(*copy, values.begin());
}

void barrier_with_deadline(Communicator const& comm, double timeout_seconds) {
    WaitScope const wait(comm, Wait::barrier);
    Pending pending(nullptr);
    pending.barrier(comm);
    pending.wait(timeout_seconds, "the other ranks");
}

void broadcast_with_deadline(Communicator const& comm, std::span<std::byte> bytes,
                             double timeout_seconds) {
    WaitScope const wait(comm, Wait::broadcast);
    auto const copy = copy_of(std::span<std::byte const>(bytes));
    Pending pending(copy);
    pending.broadcast(comm, std::span(*copy));
    pending.wait(timeout_seconds, "rank 0's buffers");
    if (!comm.is_root()) {
        std::ranges::copy(*copy, bytes.begin());
    }
}

} // namespace lockstep::comm
