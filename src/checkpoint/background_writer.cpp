#include "checkpoint/background_writer.hpp"

#include "base/clock.hpp"
#include "base/recorder.hpp"
#include "comm/agree.hpp"
#include "comm/speaker_scope.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/comm/session.hpp"

#include <algorithm>
#include <chrono>
#include <exception>

namespace lockstep::checkpoint {

namespace {

constexpr std::size_t line_bytes = 64;

std::size_t padded(std::size_t bytes) {
    return (bytes + line_bytes - 1) / line_bytes * line_bytes;
}

std::size_t bytes_of_parts(Snapshot const& snapshot) {
    std::size_t bytes = 0;
    for (auto const& parts : snapshot.parts) {
        for (auto const& part : parts) {
            bytes += padded(part.bytes.size());
        }
    }
    return bytes;
}

} // namespace

struct BackgroundWriter::Work {
    explicit Work(comm::Communicator const& world) : comm(world.duplicate()) {}

    comm::Communicator comm;
    std::vector<std::byte> memory;
    Snapshot snapshot; ///< its parts lie in `memory`

    void copy(Snapshot const& of);
    Outcome write(Store const& store, std::int64_t step, std::string const& attempt) const;
};

void BackgroundWriter::Work::copy(Snapshot const& of) {
    snapshot = of;
    memory.resize(std::max(memory.size(), bytes_of_parts(of)));
    auto* place = memory.data();
    for (auto& parts : snapshot.parts) {
        for (auto& part : parts) {
            std::ranges::copy(part.bytes, place);
            part.bytes = {place, part.bytes.size()};
            place += padded(part.bytes.size());
        }
    }
}

Outcome BackgroundWriter::Work::write(Store const& store, std::int64_t step,
                                      std::string const& attempt) const {
    Outcome outcome{.step = step};
    try {
        outcome.written = store.save(comm, snapshot, step, attempt);
    } catch (AgreedError const& error) {
        outcome.failure = error;
    }
    return outcome;
}

BackgroundWriter::BackgroundWriter(comm::Communicator const& world) {
    comm::agree(world, "preparing to write in the background", [] {
        if (!comm::threads_may_speak()) {
            throw Error(
                ExitCode::unavailable,
                {"MPI does not allow concurrent calls from threads",
                 "this MPI does not provide MPI_THREAD_MULTIPLE",
                 "Set checkpoint.asynchronous = false, or use an MPI with MPI_THREAD_MULTIPLE"});
        }
    });
    work_ = std::make_shared<Work>(world);
}

void BackgroundWriter::abandon() noexcept {
    if (outcome_.valid() && thread_.joinable() && work_->comm.size() > 1) {
        thread_.detach();
    }
}

void BackgroundWriter::reserve(Snapshot const& snapshot) {
    work_->memory.resize(bytes_of_parts(snapshot));
}

void BackgroundWriter::start(Snapshot const& snapshot, Store const& store, std::int64_t step,
                             std::string const& attempt) {
    if (outcome_.valid()) {
        throw Error(ExitCode::software,
                    {"cannot begin a checkpoint in the background",
                     "another one is still being written", "This is a bug; please report it"});
    }
    Stopwatch const watch;
    work_->copy(snapshot);
    std::promise<Outcome> promise;
    outcome_ = promise.get_future();
    thread_ = std::jthread([work = work_, store, step, attempt, stall_s = watch.seconds(),
                            promise = std::move(promise), recorder = Recorder::of_this_thread(),
                            speaker = comm::SpeakerScope(work_->comm)]() mutable {
        Recorder::Join const joined(std::move(recorder), "checkpoint");
        try {
            Scope const scope("writing a checkpoint", step);
            auto outcome = work->write(store, step, attempt);
            outcome.stall_s = stall_s;
            promise.set_value(std::move(outcome));
        } catch (...) {
            promise.set_exception(std::current_exception()); // of this rank alone
        }
        work.reset(); // frees a communicator where this thread is the last: that is speaking, too
    });
}

std::optional<Outcome> BackgroundWriter::poll() {
    if (!outcome_.valid() ||
        outcome_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
        return std::nullopt;
    }
    return outcome_.get();
}

std::optional<Outcome> BackgroundWriter::wait() {
    if (!outcome_.valid()) {
        return std::nullopt;
    }
    return outcome_.get();
}

} // namespace lockstep::checkpoint
