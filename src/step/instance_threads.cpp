#include "instance_threads.hpp"

#include "base/recorder.hpp"
#include "base/text.hpp"

#include <ATen/Context.h>
#include <c10/core/AutogradState.h>
#include <torch/utils.h>

namespace lockstep::train {

// Delegated, so that the threads there are end where the host gives no more.
InstanceThreads::InstanceThreads(int instances) : InstanceThreads() {
    for (int instance = 0; instance < instances; ++instance) {
        threads_.emplace_back([this, instance, threads = torch::get_num_threads(),
                               recorder = Recorder::of_this_thread()] {
            Recorder::Join const joined(recorder, concat("replica ", instance));
            play(instance, threads);
        });
    }
}

InstanceThreads::~InstanceThreads() {
    {
        std::lock_guard const lock(mutex_);
        ends_ = true;
    }
    changed_.notify_all();
    for (auto& thread : threads_) {
        thread.join();
    }
}

void InstanceThreads::run(std::function<void(int)> work) {
    std::unique_lock lock(mutex_);
    work_ = std::move(work);
    running_ = static_cast<int>(threads_.size());
    ++round_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return running_ == 0; });
    if (first_failure_) {
        std::rethrow_exception(std::exchange(first_failure_, nullptr));
    }
}

void InstanceThreads::play(int instance, int torch_threads) {
    // Both belong to a thread, not to the process.
    torch::set_num_threads(torch_threads);
    at::globalContext().setFlushDenormal(true);
    // Backward would run on autograd's one thread per device, where a layer that waits for another
    // replica on the same device would keep that one out for ever.
    c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
    std::uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [&] { return ends_ || round_ != seen; });
        if (ends_) {
            return;
        }
        seen = round_;
        lock.unlock();
        std::exception_ptr failure;
        try {
            work_(instance);
        } catch (...) {
            failure = std::current_exception();
            std::lock_guard const at_once(mutex_);
            first_failure_ = first_failure_ ? first_failure_ : failure;
        }
        lock.lock();
        if (--running_ == 0) {
            changed_.notify_all();
        }
    }
}

} // namespace lockstep::train
