#include "comm/send_queue.hpp"

#include <algorithm>
#include <utility>

#include "counts.hpp"

namespace lockstep::comm {

namespace {

constexpr std::size_t short_slice = std::size_t{60} << 10; ///< below 64 KiB with what MPI adds
constexpr std::size_t short_message = std::size_t{512} << 10;
constexpr std::size_t long_slice = std::size_t{1} << 20;
constexpr std::size_t max_under_way = std::size_t{4} << 20; ///< bytes to one rank

} // namespace

std::size_t slice_bytes(std::size_t message_bytes) {
    return message_bytes <= short_message ? short_slice : long_slice;
}

SendQueue::~SendQueue() {
    for (auto& [to, peer] : peers_) {
        for (auto& slice : peer.under_way) {
            int done = 0;
            if (MPI_Test(&slice.request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done == 0) {
                static_cast<void>(new std::shared_ptr<void const>(std::move(slice.memory)));
            }
        }
    }
}

void SendQueue::add(int to, int tag, std::span<std::byte const> bytes,
                    std::shared_ptr<void const> memory, std::shared_ptr<std::size_t> const& left) {
    auto& peer = peers_[to];
    in_parts(bytes.size(), slice_bytes(bytes.size()), [&](std::size_t first, int length) {
        peer.waiting.push_back(
            {tag, bytes.subspan(first, static_cast<std::size_t>(length)), memory, left});
        ++*left;
    });
    progress(to, peer);
}

void SendQueue::progress() {
    for (auto peer = peers_.begin(); peer != peers_.end();) {
        progress(peer->first, peer->second);
        bool const idle = peer->second.waiting.empty() && peer->second.under_way.empty();
        peer = idle ? peers_.erase(peer) : std::next(peer);
    }
}

void SendQueue::progress(int to, Peer& peer) {
    std::erase_if(peer.under_way, [&](Slice& slice) {
        int done = 0;
        check(MPI_Test(&slice.request, &done, MPI_STATUS_IGNORE), "MPI_Test");
        if (done != 0) {
            --*slice.left;
            peer.bytes_under_way -= slice.bytes.size();
        }
        return done != 0;
    });
    while (!peer.waiting.empty() &&
           (peer.under_way.empty() ||
            peer.bytes_under_way + peer.waiting.front().bytes.size() <= max_under_way)) {
        auto& slice = peer.under_way.emplace_back(std::move(peer.waiting.front()));
        peer.waiting.pop_front();
        peer.bytes_under_way += slice.bytes.size();
        check(MPI_Isend(slice.bytes.data(), mpi_count(slice.bytes.size()), MPI_BYTE, to, slice.tag,
                        raw(comm_), &slice.request),
              "MPI_Isend");
    }
}

} // namespace lockstep::comm
