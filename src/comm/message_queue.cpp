#include "comm/message_queue.hpp"

#include <iterator>
#include <utility>

#include "counts.hpp"

namespace lockstep::comm {

namespace {

constexpr int nobody = -1;
constexpr std::size_t short_slice = std::size_t{60} << 10; ///< below 64 KiB with what MPI adds
constexpr std::size_t short_message = std::size_t{512} << 10;
constexpr std::size_t long_slice = std::size_t{1} << 20;
constexpr std::size_t max_under_way = std::size_t{4} << 20; ///< bytes to one rank

/// Size of the slices in which a message of that many bytes travels (the last one may be shorter);
/// both sides cut it in the same way. Open MPI asks the receiver before it sends more than 64 KiB
/// over TCP (rendezvous), and that handshake queues behind what is under way already: short slices
/// need no handshake, and long messages do not delay the handshakes of the other direction until
/// they are done.
std::size_t slice_bytes(std::size_t message_bytes) {
    return message_bytes <= short_message ? short_slice : long_slice;
}

} // namespace

MessageQueue::~MessageQueue() {
    for (std::size_t i = 0; i < requests_.size(); ++i) {
        int done = 0;
        if (under_way_[i].to == nobody) {
            MPI_Cancel(&requests_[i]);
        }
        if (MPI_Test(&requests_[i], &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done == 0) {
            static_cast<void>(
                new std::shared_ptr<void const>(std::move(under_way_[i].owner.memory)));
        }
    }
}

void MessageQueue::send(int to, int tag, std::span<std::byte const> bytes, Owner const& owner) {
    auto& peer = peers_[to];
    in_parts(bytes.size(), slice_bytes(bytes.size()), [&](std::size_t first, int length) {
        peer.waiting.push_back(
            {to, tag, bytes.subspan(first, static_cast<std::size_t>(length)), owner});
        ++*owner.left;
    });
    start(peer);
}

void MessageQueue::receive(int from, int tag, std::span<std::byte> bytes, Owner const& owner) {
    in_parts(bytes.size(), slice_bytes(bytes.size()), [&](std::size_t first, int length) {
        auto const slice = bytes.subspan(first, static_cast<std::size_t>(length));
        ++*owner.left;
        check(MPI_Irecv(slice.data(), length, MPI_BYTE, from, tag, raw(comm_),
                        &under_way({nobody, tag, slice, owner})),
              "MPI_Irecv");
    });
}

void MessageQueue::progress() {
    settle();
    for (auto peer = peers_.begin(); peer != peers_.end();) {
        start(peer->second);
        bool const idle = peer->second.waiting.empty() && peer->second.bytes_under_way == 0;
        peer = idle ? peers_.erase(peer) : std::next(peer);
    }
}

void MessageQueue::settle() {
    if (requests_.empty()) {
        return;
    }
    int count = 0;
    finished_.resize(requests_.size());
    check(MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count,
                       finished_.data(), MPI_STATUSES_IGNORE),
          "MPI_Testsome");
    if (count <= 0) {
        return;
    }
    for (int const place : std::span(finished_).first(static_cast<std::size_t>(count))) {
        auto const& slice = under_way_[static_cast<std::size_t>(place)];
        --*slice.owner.left;
        if (slice.to != nobody) {
            peers_[slice.to].bytes_under_way -= slice.bytes.size();
        }
    }
    std::size_t kept = 0;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
        if (requests_[i] != MPI_REQUEST_NULL) {
            requests_[kept] = requests_[i];
            under_way_[kept] = std::move(under_way_[i]);
            ++kept;
        }
    }
    requests_.resize(kept);
    under_way_.resize(kept);
}

void MessageQueue::start(Peer& peer) {
    while (!peer.waiting.empty() &&
           (peer.bytes_under_way == 0 ||
            peer.bytes_under_way + peer.waiting.front().bytes.size() <= max_under_way)) {
        auto slice = std::move(peer.waiting.front());
        peer.waiting.pop_front();
        peer.bytes_under_way += slice.bytes.size();
        check(MPI_Isend(slice.bytes.data(), mpi_count(slice.bytes.size()), MPI_BYTE, slice.to,
                        slice.tag, raw(comm_), &under_way(slice)),
              "MPI_Isend");
    }
}

/// Where MPI writes the slice's request.
MPI_Request& MessageQueue::under_way(Slice slice) {
    under_way_.push_back(std::move(slice));
    return requests_.emplace_back(MPI_REQUEST_NULL);
}

} // namespace lockstep::comm
