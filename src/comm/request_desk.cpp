#include "comm/request_desk.hpp"

#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/native.hpp"
#include "comm/wait_scope.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/comm/session.hpp"

#include <chrono>

namespace lockstep::comm {

namespace {

constexpr int request_tag = 1;
constexpr int answer_tag = 2;
constexpr int announce_tag = 3;
constexpr auto pause_between_looks = std::chrono::milliseconds(2); ///< the core is for training

void send_text(Communicator const& comm, std::string const& text, int to, int tag) {
    check(MPI_Send(text.data(), static_cast<int>(text.size()), MPI_CHAR, to, tag, raw(comm)),
          "MPI_Send");
}

/// The text and its sender, once one is there.
std::optional<std::pair<std::string, int>> received_text(Communicator const& comm, int from,
                                                         int tag) {
    int there = 0;
    MPI_Status status{};
    check(MPI_Iprobe(from, tag, raw(comm), &there, &status), "MPI_Iprobe");
    if (there == 0) {
        return std::nullopt;
    }
    int length = 0;
    check(MPI_Get_count(&status, MPI_CHAR, &length), "MPI_Get_count");
    std::string text(static_cast<std::size_t>(length), '\0');
    check(MPI_Recv(text.data(), length, MPI_CHAR, status.MPI_SOURCE, tag, raw(comm),
                   MPI_STATUS_IGNORE),
          "MPI_Recv");
    return std::pair(std::move(text), status.MPI_SOURCE);
}

} // namespace

RequestDesk::RequestDesk(Communicator const& world, Answer answer)
    : requests_(world.duplicate()), answer_(std::move(answer)) {
    agree(world, "opening the requests of ranks", [&] {
        if (world.size() > 1 && !threads_may_speak()) {
            throw Error(ExitCode::unavailable,
                        {"ranks cannot work independently of each other",
                         "this MPI does not provide MPI_THREAD_MULTIPLE",
                         "Use an MPI that provides MPI_THREAD_MULTIPLE, or start only one rank"});
        }
    });
    if (answer_ && world.size() > 1) {
        speaker_.emplace(world);
        thread_ = std::jthread([this](std::stop_token const& stop) { serve(stop); });
    }
}

void RequestDesk::serve(std::stop_token const& stop) {
    try {
        while (!stop.stop_requested()) {
            if (auto const request = received_text(requests_, MPI_ANY_SOURCE, request_tag)) {
                send_text(requests_, answer(request->second, request->first), request->second,
                          answer_tag);
            } else {
                std::this_thread::sleep_for(pause_between_looks);
            }
        }
    } catch (...) {
        abort_job(static_cast<int>(current_error().code()));
    }
}

std::string RequestDesk::answer(int from, std::string const& request) {
    std::scoped_lock const lock(mutex_);
    return answer_(from, request);
}

std::string RequestDesk::ask(int rank, std::string const& request) {
    if (rank == requests_.rank()) {
        return answer(rank, request);
    }
    WaitScope const wait(requests_, Wait::message);
    send_text(requests_, request, rank, request_tag);
    while (true) {
        if (auto reply = received_text(requests_, rank, answer_tag)) {
            return std::move(reply->first);
        }
        std::this_thread::sleep_for(pause_between_looks);
    }
}

void RequestDesk::announce() {
    if (announced_.exchange(true)) {
        return;
    }
    for (int rank = 1; rank < requests_.size(); ++rank) {
        send_text(requests_, "", rank, announce_tag);
    }
}

bool RequestDesk::was_announced() {
    if (!announced_ && !requests_.is_root() && received_text(requests_, 0, announce_tag)) {
        announced_ = true;
    }
    return announced_;
}

void RequestDesk::close() {
    int announced = announced_ ? 1 : 0;
    broadcast(requests_, std::span(&announced, 1)); // after each rank's last request
    while (announced != 0 && !was_announced()) {
        std::this_thread::sleep_for(pause_between_looks);
    }
    barrier(requests_); // all serve until nobody asks
    thread_ = {};
    speaker_.reset();
}

} // namespace lockstep::comm
