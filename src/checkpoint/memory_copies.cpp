#include "checkpoint/memory_copies.hpp"

#include "base/hash.hpp"
#include "base/process.hpp"
#include "checkpoint/parts_table.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/hosts.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/comm/session.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

namespace lockstep::checkpoint {

namespace {

constexpr int slots_each = 2; ///< of each rank
constexpr int header_tag = 0;
constexpr int content_tag = 1;
constexpr auto pause_between_polls = std::chrono::microseconds(500); ///< the core is for training

/// The rank of the next host that takes in each rank's parts; none where there is one host only.
std::vector<int> neighbours_of(comm::Hosts const& hosts) {
    std::vector<int> neighbours(hosts.of_rank.size(), -1);
    for (std::size_t rank = 0; hosts.count() > 1 && rank < neighbours.size(); ++rank) {
        auto const owner = static_cast<int>(rank);
        neighbours[rank] = hosts.delegate((hosts.host(owner) + 1) % hosts.count(), owner);
    }
    return neighbours;
}

/// Whether the messages came before the wish to stop.
bool awaited(comm::Wire& wire, comm::Flight& flight, std::stop_token const& stop) {
    while (!flight.done()) {
        if (stop.stop_requested()) {
            return false;
        }
        wire.progress();
        if (!flight.done()) {
            std::this_thread::sleep_for(pause_between_polls);
        }
    }
    return true;
}

} // namespace

MemoryCopies::MemoryCopies(comm::Communicator const& world, Setup const& setup,
                           Snapshot const& like)
    : world_(world), setup_(setup), wire_(comm::mpi_wire(world.duplicate())) {
    comm::agree(world, "preparing copies in memory", [] {
        if (!comm::threads_may_speak()) {
            throw Error(ExitCode::unavailable,
                        {"MPI does not allow concurrent calls from threads",
                         "this MPI does not provide MPI_THREAD_MULTIPLE",
                         "Set fault-tolerance.memory-copy-every = none, or use an MPI with "
                         "MPI_THREAD_MULTIPLE"});
        }
    });
    auto const host = setup.layout.split(world);
    auto const neighbours = neighbours_of(comm::hosts_from(comm::leaders(world, host)));
    PartsTable const table(like, world.is_root());
    auto const capacities = comm::all_gather(
        world, static_cast<std::uint64_t>(table.bytes() + 2 * table.text().size() + room_to_grow));
    auto const own = static_cast<std::size_t>(world.rank());
    neighbour_ = neighbours[own];
    try {
        comm::agree(world, "getting memory for copies of the run's state", [&] {
            room_->own = make_slots(world.rank(), capacities[own]);
            for (std::size_t rank = 0; rank < neighbours.size(); ++rank) {
                if (neighbours[rank] == world.rank()) {
                    auto const guest = static_cast<int>(rank);
                    room_->guests.push_back({guest, make_slots(guest, capacities[rank])});
                }
            }
        });
    } catch (...) {
        remove();
        throw;
    }
    thread_ = std::jthread([this](std::stop_token const& stop) { serve(stop); });
}

MemoryCopies::~MemoryCopies() = default;

MemoryCopies::Slots MemoryCopies::make_slots(int rank, std::uint64_t capacity) {
    CopyHeader const header{
        .run = setup_.run, .job = setup_.job, .attempt = setup_.attempt, .rank = rank};
    Slots made;
    for (int slot = 0; slot < slots_each; ++slot) {
        auto const path = copy_path(setup_.directory, header, slot);
        made.push_back(std::make_unique<MemorySlot>(path, capacity));
    }
    return made;
}

void MemoryCopies::begin(Snapshot const& snapshot, std::int64_t step) {
    auto const slot = static_cast<std::size_t>(count_++ % slots_each);
    PartsTable const table(snapshot, world_.is_root());
    auto const text = table.text();
    CopyHeader header{.run = setup_.run,
                      .job = setup_.job,
                      .attempt = setup_.attempt,
                      .step = step,
                      .rank = world_.rank(),
                      .ranks = world_.size(),
                      .table_bytes = text.size(),
                      .block_bytes = table.bytes()};
    auto& own = *room_->own[slot];
    if (comm::failure_of([&] { own.require(header.content_bytes()); })) {
        failed_ = true;
        header.table_bytes = header.block_bytes = 0; // others wait for something
    }
    own.invalidate();
    if (!failed_) {
        auto const content = own.content(header.content_bytes());
        std::memcpy(content.data(), text.data(), text.size());
        table.copy(snapshot, content.subspan(text.size()));
    }
    busy_.store(true, std::memory_order_relaxed);
    {
        std::scoped_lock const lock(mutex_);
        work_.emplace(header, slot, comm::SpeakerScope(world_));
    }
    wake_.notify_all();
}

void MemoryCopies::serve(std::stop_token const& stop) {
    std::unique_lock lock(mutex_);
    while (wake_.wait(lock, stop, [this] { return work_.has_value(); })) {
        lock.unlock();
        auto const before = processor_seconds_of_this_thread();
        // An error of MPI is the exchange's, too, which tells it.
        auto const failure = comm::failure_of([&] {
            if (!transfer(*work_, stop)) {
                failed_ = true;
            }
        });
        failed_ = failed_ || failure;
        processor_s_ = processor_seconds_of_this_thread() - before;
        lock.lock();
        work_.reset();
        busy_.store(false, std::memory_order_release);
        wake_.notify_all();
    }
}

/// Whether all that this rank is to keep is there.
bool MemoryCopies::transfer(Work const& work, std::stop_token const& stop) {
    auto header = work.header;
    auto& own = *room_->own[work.slot];
    auto const content = own.content(header.content_bytes());
    if (!content.empty()) {
        header.hash = hash64(content);
        own.complete(header);
    }
    if (!exchange_headers(header, stop)) {
        return false;
    }
    bool complete = true;
    std::vector<CopyHeader> arriving(room_->guests.size());
    auto const flight = wire_->flight(room_);
    if (neighbour_ >= 0) {
        flight->send(neighbour_, content_tag, content);
    }
    for (std::size_t i = 0; i < arriving.size(); ++i) {
        auto& guest = room_->guests[i];
        auto& slot = *guest.slots[work.slot];
        if (!decode(guest.header, arriving[i])) {
            return false;
        }
        auto const bytes = arriving[i].content_bytes();
        slot.invalidate();
        if (comm::failure_of([&] { slot.require(bytes); })) {
            complete = false;
            arriving[i].table_bytes = arriving[i].block_bytes = 0;
            guest.sink.resize(bytes);
            flight->receive(guest.rank, content_tag, guest.sink);
        } else {
            flight->receive(guest.rank, content_tag, slot.content(bytes));
        }
    }
    if (!awaited(*wire_, *flight, stop)) {
        return false;
    }
    for (std::size_t i = 0; i < arriving.size(); ++i) {
        if (arriving[i].content_bytes() > 0) { // whether it is as it was sent tells its hash
            room_->guests[i].slots[work.slot]->complete(arriving[i]);
        }
    }
    return complete;
}

bool MemoryCopies::exchange_headers(CopyHeader const& header, std::stop_token const& stop) {
    auto const flight = wire_->flight(room_);
    if (neighbour_ >= 0) {
        room_->header = encoded(header);
        flight->send(neighbour_, header_tag, room_->header);
    }
    for (auto& guest : room_->guests) {
        guest.header.resize(copy_header_bytes);
        flight->receive(guest.rank, header_tag, guest.header);
    }
    return awaited(*wire_, *flight, stop);
}

void MemoryCopies::settle(double seconds) {
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return !is_busy(); });
}

void MemoryCopies::remove_older() const noexcept {
    remove_copies(setup_.directory, setup_.run, {.attempt = setup_.attempt});
}

void MemoryCopies::remove() const noexcept {
    auto const remove_all = [](Slots const& slots) {
        for (auto const& slot : slots) {
            slot->remove();
        }
    };
    remove_all(room_->own);
    for (auto const& guest : room_->guests) {
        remove_all(guest.slots);
    }
}

} // namespace lockstep::checkpoint
