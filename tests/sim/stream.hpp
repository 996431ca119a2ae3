#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>

#include "clock.hpp"
#include "options.hpp"

namespace lockstep::sim {

/// A moment of a stream.
struct Version {
    Clock clock; ///< what has happened before it
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    double time = 0;
    std::exception_ptr failure; ///< of the stream so far
};

/// Work that is done in order by a thread of its own, which pauses at random. After a kernel failed
/// no other one runs, as after an assertion on a device.
class Stream {
  public:
    struct Task {
        std::uint64_t epoch = 0;
        std::function<void()> work;
        bool is_kernel = true; ///< may pause before it, and is left out after a failure
    };

    /// `index`: among the streams of all devices. Starts the thread.
    Stream(int device, std::int64_t id, std::size_t index, Options const& options);

    int device() const noexcept { return device_; }
    std::int64_t id() const noexcept { return id_; }
    std::size_t index() const noexcept { return index_; }

    void put(Task task);
    /// All work up to this epoch is done.
    std::uint64_t finished() const noexcept { return finished_; }
    /// For work of this stream only.
    std::exception_ptr failure() const noexcept { return failure_; }

    Clock clock;             ///< what happens before the next work; guarded by the machine
    std::uint64_t epoch = 0; ///< of the last work; guarded by the machine

  private:
    void run(Options const& options);

    int device_;
    std::int64_t id_;
    std::size_t index_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Task> tasks_;
    std::atomic<std::uint64_t> finished_ = 0;
    std::exception_ptr failure_;
};

} // namespace lockstep::sim
