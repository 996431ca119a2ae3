#include "machine.hpp"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <unistd.h>

namespace lockstep::sim {

namespace {

struct sigaction former_action {};

/// Says what the host touched, then lets the program end as it would.
void on_fault(int, siginfo_t* info, void*) {
    char const* what = nullptr;
    if (Machine::instance().device_of(info->si_addr) >= 0) {
        what = "sim: host code touched the memory of a device\n";
    } else if (Machine::instance().is_pinned(info->si_addr)) {
        what = "sim: host code touched pinned memory before it waited for the copy\n";
    }
    if (what != nullptr) {
        [[maybe_unused]] auto const written = ::write(STDERR_FILENO, what, std::strlen(what));
    }
    ::sigaction(SIGSEGV, &former_action, nullptr);
}

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

std::string name_of(Stream const& stream) {
    return "stream " + std::to_string(stream.device()) + "." + std::to_string(stream.id());
}

} // namespace

Machine& Machine::instance() {
    static Machine& machine = []() -> Machine& {
        auto& made = *new Machine(options_of_environment());
        struct sigaction action {};
        action.sa_sigaction = on_fault;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        ::sigaction(SIGSEGV, &action, &former_action);
        return made;
    }();
    return machine;
}

Machine::Machine(Options const& options)
    : options_(options), blocks_(options), counts_(options.counts), calls_(options.calls) {}

// --- streams

Stream& Machine::add_stream(int device, std::int64_t id) {
    streams_.push_back(std::make_unique<Stream>(device, id, streams_.size(), options_));
    return *streams_.back();
}

Stream& Machine::stream(int device, std::int64_t id) {
    std::lock_guard const lock(mutex_);
    for (auto const& each : streams_) {
        if (each->device() == device && each->id() == id) {
            return *each;
        }
    }
    if (id != 0 || device < 0 || device >= options_.devices) {
        throw std::invalid_argument("sim: no stream " + std::to_string(id));
    }
    return add_stream(device, 0);
}

Stream& Machine::new_stream(int device) {
    std::lock_guard const lock(mutex_);
    return add_stream(device, static_cast<std::int64_t>(streams_.size()) + 1);
}

std::vector<Stream*> Machine::streams_of(int device) {
    std::lock_guard const lock(mutex_);
    std::vector<Stream*> found;
    for (auto const& each : streams_) {
        if (each->device() == device) {
            found.push_back(each.get());
        }
    }
    return found;
}

// --- work

void Machine::tell(Block const& block, Shadow::Conflict const& conflict, Access const& access) {
    auto const does = [](Access const& each) { return each.writes ? " writes " : " reads "; };
    auto const& earlier = conflict.earlier;
    auto const text = std::string("sim: race: ") + access.kernel + " on " +
                      (access.epoch == 0 ? "the host" : name_of(*streams_[access.stream])) +
                      does(access) + "bytes " + std::to_string(conflict.first) + " to " +
                      std::to_string(conflict.last) + " of a block of " +
                      std::to_string(block.used) + " on " +
                      (block.device < 0 ? "the host" : "device " + std::to_string(block.device)) +
                      ", which nothing orders behind " + earlier.kernel + " on " +
                      name_of(*streams_[earlier.stream]) + ", which" + does(earlier) + "them";
    ++counts_->races;
    if (options_.check == Check::raise) {
        throw Race(text);
    }
    std::fprintf(stderr, "%s\n", text.c_str());
}

void Machine::use(Stream const& on, char const* kernel, Range const& range) {
    auto* const block = blocks_.find(range.data, range.bytes);
    if (block == nullptr) {
        throw std::logic_error(std::string("sim: ") + kernel +
                               " is given memory that is not within one living block");
    }
    if (options_.check != Check::off) {
        Access const access{on.index(), on.epoch, kernel, range.writes};
        auto const first =
            static_cast<std::size_t>(static_cast<std::byte const*>(range.data) - block->data);
        auto const conflict = block->shadow.touch(first, first + range.bytes, access, on.clock);
        if (conflict) {
            tell(*block, *conflict, access);
        }
    }
    if (block->device < 0) {
        if (block->pending.empty()) {
            closed_.push_back(block);
        }
        block->pending.push_back({on.index(), on.epoch, range.writes});
        Blocks::protect(*block);
    }
}

void Machine::enqueue(Stream& on, char const* kernel, std::vector<Range> const& ranges,
                      std::function<void()> work, bool is_kernel) {
    if (!options_.kernels) {
        return;
    }
    on.clock.join(host_);
    on.clock.set(on.index(), ++on.epoch);
    for (auto const& range : ranges) {
        if (range.bytes > 0) {
            use(on, kernel, range);
        }
    }
    on.put({on.epoch, std::move(work), is_kernel});
}

void Machine::launch(Stream& on, char const* kernel, std::vector<Range> const& ranges,
                     std::function<void()> work) {
    std::lock_guard const lock(mutex_);
    if (auto* const recording = recording_of(on)) {
        for (auto const& range : ranges) {
            if (range.bytes > 0 && is_pinned(range.data)) {
                refuse(on, std::string(kernel) + " uses memory of the host");
            }
        }
        recording->graph->launches.push_back({kernel, ranges, std::move(work)});
        return;
    }
    if (counts_->launches++ == options_.hang) {
        work = [] { std::this_thread::sleep_for(std::chrono::hours(24)); };
    }
    enqueue(on, kernel, ranges, std::move(work), true);
}

Mark Machine::record(Stream& on) {
    std::lock_guard const lock(mutex_);
    refuse(on, "an event, or a wait of the host");
    auto mark = std::make_shared<Version>();
    if (!options_.kernels) {
        mark->time = now();
        mark->done = true;
        return mark;
    }
    enqueue(
        on, "an event", {},
        [mark, &on] {
            std::lock_guard const guard(mark->mutex);
            mark->failure = on.failure();
            mark->time = now();
            mark->done = true;
            mark->changed.notify_all();
        },
        false);
    mark->clock = on.clock;
    return mark;
}

void Machine::wait(Stream& later, Mark const& mark) {
    std::lock_guard const lock(mutex_);
    refuse(later, "a wait for another stream");
    if (counts_->waits++ == options_.drop) {
        return;
    }
    later.clock.join(mark->clock);
    enqueue(
        later, "a wait", {},
        [mark] {
            std::unique_lock guard(mark->mutex);
            mark->changed.wait(guard, [&] { return mark->done; });
        },
        false);
}

void Machine::host_has_waited_for(Clock const& clock) {
    host_.join(clock);
    std::erase_if(closed_, [&](Block* block) {
        std::erase_if(block->pending, [&](Block::Pending const& each) {
            return host_.has(each.stream, each.epoch);
        });
        Blocks::protect(*block);
        return block->pending.empty();
    });
}

bool Machine::is_done(Mark const& mark) {
    {
        std::lock_guard const lock(mark->mutex);
        if (!mark->done) {
            return false;
        }
    }
    std::lock_guard const lock(mutex_);
    host_has_waited_for(mark->clock);
    return true;
}

bool Machine::is_idle(Stream& stream) {
    std::lock_guard const lock(mutex_);
    bool const idle = stream.finished() == stream.epoch;
    if (idle) {
        host_has_waited_for(stream.clock);
    }
    return idle;
}

void Machine::synchronize(Mark const& mark) {
    {
        std::unique_lock lock(mark->mutex);
        mark->changed.wait(lock, [&] { return mark->done; });
    }
    {
        std::lock_guard const lock(mutex_);
        ++counts_->host_waits;
        host_has_waited_for(mark->clock);
    }
    if (mark->failure) {
        std::rethrow_exception(mark->failure);
    }
}

// --- memory

void Machine::overwrite(Block& block) {
    enqueue(
        *block.home, "the reuse of freed memory", {},
        [at = blocks_.kernels(block.data), bytes = block.size] { std::memset(at, 0xFF, bytes); },
        false);
}

/// Blocks whose other users are done may be used again.
void Machine::reclaim() {
    std::erase_if(leaving_, [&](Block* block) {
        for (auto const& each : block->pending) {
            if (streams_[each.stream]->finished() < each.epoch) {
                return false;
            }
        }
        block->shadow = Shadow(block->size);
        blocks_.reuse(*block);
        if (!options_.kernels) {
            // as it was
        } else if (block->device < 0) {
            std::memset(block->data, 0xFF, block->size);
        } else {
            overwrite(*block);
        }
        return true;
    });
}

void* Machine::allocate(int device, Stream& home, std::size_t bytes) {
    std::lock_guard const lock(mutex_);
    reclaim();
    auto* const recording = recording_of(home);
    auto* const block =
        blocks_.take(device, &home, bytes, recording ? recording->graph->memory->number : 0);
    return block == nullptr ? nullptr : block->data;
}

void Machine::free(void* data) noexcept {
    std::lock_guard const lock(mutex_);
    auto* const block = blocks_.find(data, 1);
    if (block == nullptr || block->data != data) {
        std::fprintf(stderr, "sim: memory is freed that is not allocated\n");
        std::abort();
    }
    if (block->graph_memory != 0) { // a replay, too, finds there what it has not written itself
        if (auto* const recording = recording_of(*block->home)) {
            recording->graph->launches.push_back(
                {"the reuse of freed memory",
                 {{block->data, block->size, true}},
                 [at = blocks_.kernels(block->data), bytes = block->size] {
                     std::memset(at, 0xFF, bytes);
                 },
                 false});
        }
        blocks_.reuse_in_graphs(*block);
        return;
    }
    give_back(*block);
}

void Machine::give_back(Block& block) {
    for (auto* const user : block.users) {
        block.pending.push_back({user->index(), user->epoch, true});
    }
    if (!block.pending.empty()) {
        blocks_.retire(block);
        leaving_.push_back(&block);
        return;
    }
    try { // from here on the home stream may use it again: what else uses it is a race
        enqueue(
            *block.home, "the reuse of freed memory", {{block.data, block.used, true}},
            [at = blocks_.kernels(block.data), bytes = block.size] {
                std::memset(at, 0xFF, bytes);
            },
            false);
    } catch (std::exception const& error) {
        std::fprintf(stderr, "%s\n(freed without record_stream?)\n", error.what());
        if (std::uncaught_exceptions() == 0) {
            std::abort(); // else a first race is on its way
        }
    }
    blocks_.retire(block);
    blocks_.reuse(block);
}

void Machine::record_stream(void const* data, Stream& user) {
    std::lock_guard const lock(mutex_);
    auto* const block = blocks_.find(data, 0);
    if (block != nullptr && block->home != &user &&
        std::find(block->users.begin(), block->users.end(), &user) == block->users.end()) {
        block->users.push_back(&user);
    }
}

void* Machine::reserve(int device, std::size_t bytes) {
    std::lock_guard const lock(mutex_);
    auto* const block = blocks_.reserve(device, bytes);
    return block == nullptr ? nullptr : block->data;
}

void Machine::unreserve(void* data) noexcept {
    std::lock_guard const lock(mutex_);
    blocks_.unreserve(data);
}

bool Machine::populate(void* data, std::size_t bytes) {
    std::lock_guard const lock(mutex_);
    return blocks_.populate(data, bytes);
}

void Machine::discard(void* data, std::size_t bytes) {
    std::lock_guard const lock(mutex_);
    auto* const block = blocks_.find(data, bytes);
    if (block == nullptr || block->pages.empty()) {
        throw std::logic_error("sim: pages go that are not there");
    }
    if (options_.check != Check::off) {
        Access const access{streams_.size(), 0, "the discard of pages", true};
        auto const first = static_cast<std::size_t>(static_cast<std::byte*>(data) - block->data);
        if (auto const conflict = block->shadow.touch(first, first + bytes, access, host_)) {
            tell(*block, *conflict, access);
        }
    }
    blocks_.discard(*block, data, bytes);
}

void* Machine::pin(std::size_t bytes) {
    std::lock_guard const lock(mutex_);
    reclaim();
    auto* const block = blocks_.take(-1, nullptr, bytes);
    return block == nullptr ? nullptr : block->data;
}

void Machine::unpin(void* data) noexcept {
    std::lock_guard const lock(mutex_);
    auto* const block = blocks_.find(data, 1);
    if (block != nullptr) {
        std::erase(closed_, block);
        blocks_.retire(*block);
        leaving_.push_back(block);
    }
}

void* Machine::kernel_view(void const* data, std::size_t bytes) {
    if (bytes == 0) {
        return nullptr;
    }
    std::lock_guard const lock(mutex_);
    if (blocks_.find(data, bytes) == nullptr) {
        throw std::logic_error("sim: memory that is not within one living block");
    }
    return blocks_.kernels(data);
}

MemoryUse Machine::memory_use(int device) {
    std::lock_guard const lock(mutex_);
    return blocks_.use(device);
}

void Machine::reset_peak(int device) {
    std::lock_guard const lock(mutex_);
    blocks_.reset_peak(device);
}

void Machine::count_peers(std::size_t peers) {
    std::lock_guard const lock(mutex_);
    counts_->peers = peers;
}

void Machine::count_call(char const* name) {
    std::lock_guard const lock(mutex_);
    calls_.add(name);
}

} // namespace lockstep::sim
