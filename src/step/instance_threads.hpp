#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace lockstep::train {

/// Threads that each compute one replica, kept from step to step, since torch and the allocator
/// keep state by thread.
class InstanceThreads {
  public:
    explicit InstanceThreads(int instances);
    InstanceThreads(InstanceThreads const&) = delete;
    InstanceThreads& operator=(InstanceThreads const&) = delete;
    ~InstanceThreads();

    /// Runs work(instance) on every thread and waits for all.
    ///
    /// Throws  what the instance that failed first threw
    void run(std::function<void(int instance)> work);

  private:
    InstanceThreads() = default;
    void play(int instance, int torch_threads);

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
