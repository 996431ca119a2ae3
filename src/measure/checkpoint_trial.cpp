#include "measure/checkpoint_trial.hpp"

#include "base/clock.hpp"
#include "base/file.hpp"
#include "base/hash.hpp"
#include "checkpoint/reader.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/checkpoint/verify.hpp"
#include "lockstep/comm/session.hpp"

#include <algorithm>
#include <fcntl.h>
#include <unistd.h>

namespace lockstep::measure {

namespace {

using comm::Communicator;

/// So that the next read comes from the disk.
void forget(std::filesystem::path const& path) {
    int const descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
    ::close(descriptor);
}

} // namespace

CheckpointTrial::CheckpointTrial(Communicator const& world, std::uint64_t bytes,
                                 std::filesystem::path directory)
    : world_(world), state_(world, bytes), copy_(state_.bytes().size()),
      directory_(std::move(directory)), store_(directory_, 1) {
    if (comm::threads_may_speak()) {
        background_.emplace(world);
        background_->reserve(state_.snapshot());
    }
}

/// The longest of all ranks, after a start together.
double CheckpointTrial::timed(std::function<void()> const& work) const {
    comm::barrier(world_);
    Stopwatch const watch;
    work();
    return comm::all_reduce(world_, watch.seconds(), comm::Reduce::maximum);
}

void CheckpointTrial::settle() const {
    if (world_.is_root()) {
        ::sync();
    }
    comm::barrier(world_);
}

/// Making room for the next is timed on no side.
void CheckpointTrial::forget_last() const {
    if (world_.is_root()) {
        std::error_code ignored; // there may be none yet
        std::filesystem::remove(store_.path_for(1), ignored);
        ::sync();
    }
}

/// As many bytes, each rank its own part of one file that is claimed before, to the disk.
double CheckpointTrial::raw_write() {
    comm::agree(world_, "making the raw file", [&] {
        if (world_.is_root()) {
            std::filesystem::remove(raw());
            ::sync();
            File::create_new(raw()).claim_space(state_.whole_bytes());
        }
    });
    return timed([&] {
        comm::agree(world_, "writing the raw file", [&] {
            auto const file = File::open_write(raw());
            file.write_at(state_.first_byte(), state_.bytes());
            file.sync();
        });
    });
}

double CheckpointTrial::write() {
    forget_last();
    return timed([&] { store_.save(world_, state_.snapshot(), 1, "bench"); });
}

double CheckpointTrial::copy() {
    return timed([&] { std::ranges::copy(state_.bytes(), copy_.begin()); });
}

double CheckpointTrial::stall() {
    forget_last();
    auto const snapshot = state_.snapshot();
    auto const seconds = timed([&] { background_->start(snapshot, store_, 1, "bench"); });
    if (auto const ended = background_->wait(); ended && ended->failure) {
        throw AgreedError(*ended->failure);
    }
    return seconds;
}

/// What the checksum header's checksums cost a write: they are computed of what was just compared,
/// and so is in the core's cache.
double CheckpointTrial::hash() {
    constexpr std::size_t at_once = std::size_t{256} << 10;
    auto const bytes = state_.bytes();
    std::vector<std::byte> buffer(at_once);
    double seconds = 0;
    for (std::size_t at = 0; at < bytes.size(); at += at_once) {
        auto const part = bytes.subspan(at, std::min(at_once, bytes.size() - at));
        std::ranges::copy(part, buffer.begin());
        Stopwatch const watch;
        Hasher hasher;
        hasher.add(std::span(buffer).first(part.size()));
        seconds += watch.seconds();
    }
    return comm::all_reduce(world_, seconds, comm::Reduce::maximum);
}

double CheckpointTrial::raw_read() {
    forget(raw());
    return timed([&] { File::open_read(raw()).read_at(state_.first_byte(), copy_); });
}

double CheckpointTrial::load() {
    auto const path = store_.path_for(1);
    forget(path);
    return timed([&] {
        checkpoint::Reader const reader(checkpoint::verify_together(world_, path));
        auto into = std::span(copy_);
        auto const slice = copy_.size() / TrialState::names.size();
        for (auto const* array : TrialState::names) {
            reader.read(array, state_.first(), into.first(slice));
            into = into.subspan(slice);
        }
    });
}

} // namespace lockstep::measure
