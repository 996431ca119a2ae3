#include "pending.hpp"

#include "lockstep/base/error.hpp"
#include "lockstep/base/text.hpp"
#include "lockstep/comm/board.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

namespace lockstep::comm {

namespace {

// Messages of at most this many elements, far below MPI's limit of int counts.
constexpr std::int64_t most_elements = std::int64_t{1} << 28;

void wait_for(std::vector<MPI_Request>& requests, double timeout_seconds, std::string const& what) {
    Backoff backoff(timeout_seconds, what);
    int done = 0;
    while (true) {
        check(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done,
                          MPI_STATUSES_IGNORE),
              "MPI_Testall");
        if (done != 0) {
            requests.clear();
            return;
        }
        backoff.pause();
    }
}

template <class Call>
void in_pieces(std::int64_t elements, Call const& call) {
    for (std::int64_t first = 0; first < elements; first += most_elements) {
        call(first, static_cast<int>(std::min(most_elements, elements - first)));
    }
}

} // namespace

Backoff::Backoff(double seconds, std::string what) : seconds_(seconds), what_(std::move(what)) {}

void Backoff::pause() {
    auto const waited = watch_.seconds();
    if (waited > seconds_) {
        throw Error(ExitCode::rank_lost,
                    {concat("waited ", fixed(seconds_, 0), " s for ", what_),
                     "a rank is dead, stopped, or far slower than the others, or the network is",
                     "Look at the other hosts; communication.timeout-seconds is the limit"});
    }
    if (waited < 1e-3) {
        std::this_thread::yield();
    } else {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
}

void Pending::send(Communicator const& comm, int to, float const* values, std::int64_t count) {
    in_pieces(count, [&](std::int64_t first, int length) {
        check(MPI_Isend(values + first, length, MPI_FLOAT, to, 0, comm.raw(),
                        &requests_.emplace_back()),
              "MPI_Isend");
    });
}

void Pending::receive(Communicator const& comm, int from, float* values, std::int64_t count) {
    in_pieces(count, [&](std::int64_t first, int length) {
        check(MPI_Irecv(values + first, length, MPI_FLOAT, from, 0, comm.raw(),
                        &requests_.emplace_back()),
              "MPI_Irecv");
    });
}

void Pending::send(Communicator const& comm, int to, std::uint16_t const* values,
                   std::int64_t count) {
    in_pieces(count, [&](std::int64_t first, int length) {
        check(MPI_Isend(values + first, length, MPI_UINT16_T, to, 0, comm.raw(),
                        &requests_.emplace_back()),
              "MPI_Isend");
    });
}

void Pending::receive(Communicator const& comm, int from, std::uint16_t* values,
                      std::int64_t count) {
    in_pieces(count, [&](std::int64_t first, int length) {
        check(MPI_Irecv(values + first, length, MPI_UINT16_T, from, 0, comm.raw(),
                        &requests_.emplace_back()),
              "MPI_Irecv");
    });
}

void Pending::sum(Communicator const& comm, float* values, std::int64_t count) {
    in_pieces(count, [&](std::int64_t first, int length) {
        check(MPI_Iallreduce(MPI_IN_PLACE, values + first, length, MPI_FLOAT, MPI_SUM, comm.raw(),
                             &requests_.emplace_back()),
              "MPI_Iallreduce");
    });
}

void Pending::gather(Communicator const& comm, float* whole, std::vector<int> const& bounds) {
    auto const& begins = *counts_.emplace_back(std::make_unique<std::vector<int>>(bounds));
    auto& counts = *counts_.emplace_back(std::make_unique<std::vector<int>>());
    for (std::size_t rank = 0; rank + 1 < bounds.size(); ++rank) {
        counts.push_back(bounds[rank + 1] - bounds[rank]);
    }
    check(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_FLOAT, whole, counts.data(), begins.data(),
                          MPI_FLOAT, comm.raw(), &requests_.emplace_back()),
          "MPI_Iallgatherv");
}

bool Pending::done() {
    if (requests_.empty()) {
        return true;
    }
    int done = 0;
    check(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done,
                      MPI_STATUSES_IGNORE),
          "MPI_Testall");
    if (done != 0) {
        requests_.clear();
    }
    return done != 0;
}

void Pending::wait(double timeout_seconds) {
    wait_for(requests_, timeout_seconds, "gradients or parameters of other ranks");
    counts_.clear();
}

void sum_with_deadline(Communicator const& comm, std::span<double> values, double timeout_seconds) {
    WaitScope const wait(comm, Wait::all_reduce);
    std::vector<MPI_Request> requests(1);
    check(MPI_Iallreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_DOUBLE,
                         MPI_SUM, comm.raw(), requests.data()),
          "MPI_Iallreduce");
    wait_for(requests, timeout_seconds, "the vote of all ranks");
}

void barrier_with_deadline(Communicator const& comm, double timeout_seconds) {
    std::vector<MPI_Request> requests(1);
    check(MPI_Ibarrier(comm.raw(), requests.data()), "MPI_Ibarrier");
    wait_for(requests, timeout_seconds, "the other ranks");
}

void broadcast_with_deadline(Communicator const& comm, std::span<std::byte> bytes,
                             double timeout_seconds) {
    std::vector<MPI_Request> requests(1);
    check(MPI_Ibcast(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, 0, comm.raw(),
                     requests.data()),
          "MPI_Ibcast");
    wait_for(requests, timeout_seconds, "rank 0's buffers");
}

} // namespace lockstep::comm
