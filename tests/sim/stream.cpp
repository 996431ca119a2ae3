#include "stream.hpp"

#include <chrono>
#include <csignal>
#include <random>
#include <thread>

namespace lockstep::sim {

Stream::Stream(int device, std::int64_t id, std::size_t index, Options const& options)
    : device_(device), id_(id), index_(index) {
    // Signals are for the program's threads.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    // A device's work ends with the process, as a real one's: a kernel that waits for a rank that
    // is gone must not keep the process from ending.
    std::thread([this, options] { run(options); }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Stream::put(Task task) {
    std::lock_guard const lock(mutex_);
    tasks_.push_back(std::move(task));
    changed_.notify_one();
}

void Stream::run(Options const& options) {
    std::mt19937_64 draw(options.seed * 7919 + index_);
    std::uniform_real_distribution<> uniform(0, 1);
    // Some streams are late all the time, others now and then.
    double const longest_us = options.delay_us * (uniform(draw) < 0.5 ? 1 : 0.1);
    std::unique_lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [this] { return !tasks_.empty(); });
        auto task = std::move(tasks_.front());
        tasks_.pop_front();
        lock.unlock();
        if (task.is_kernel && longest_us > 0 && uniform(draw) < 0.5) {
            std::this_thread::sleep_for(
                std::chrono::duration<double, std::micro>(longest_us * uniform(draw)));
        }
        try {
            if (!failure_ || !task.is_kernel) {
                task.work();
            }
        } catch (...) {
            failure_ = std::current_exception();
        }
        task.work = nullptr; // its memory is free before the work counts as done
        finished_ = task.epoch;
        lock.lock();
    }
}

} // namespace lockstep::sim
