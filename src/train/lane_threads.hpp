#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace lockstep::train {

/// Threads that each play one replica, kept from step to step, since torch and the allocator keep
/// state by thread.
class LaneThreads {
  public:
    explicit LaneThreads(int lanes);
    LaneThreads(LaneThreads const&) = delete;
    LaneThreads& operator=(LaneThreads const&) = delete;
    ~LaneThreads();

    /// Runs work(lane) on every thread and waits for all.
    ///
    /// Throws  what the lane that failed first threw
    void run(std::function<void(int lane)> work);

  private:
    LaneThreads() = default;
    void play(int lane, int torch_threads);

    std::mutex mutex_;
    std::condition_variable changed_;
    std::function<void(int)> work_;
    std::uint64_t round_ = 0;
    int running_ = 0;
    bool ends_ = false;
    std::exception_ptr first_failure_; ///< others may have failed because of it
    std::vector<std::thread> threads_;
};

} // namespace lockstep::train
