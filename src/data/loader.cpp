#include "data/loader.hpp"

#include "base/recorder.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <numeric>

namespace lockstep::data {

Loader::Loader(Dataset const& dataset, Request request, LoaderOptions const& options)
    : dataset_(dataset), request_(std::move(request)), finish_(options.finish),
      slots_(static_cast<std::size_t>(std::max(options.prefetch, 1)) + 1), free_(slots_.size()),
      places_(slots_.size()) {
    std::iota(free_.rbegin(), free_.rend(), std::size_t{0});
    try {
        for (int i = 0; i < std::max(options.workers, 1); ++i) {
            workers_.emplace_back([this, i, recorder = Recorder::of_this_thread()] {
                Recorder::Join const joined(recorder, concat("loader ", i));
                work();
            });
        }
    } catch (...) {
        end_workers(); // the host gives no more threads; those that run must not outlive us
        throw;
    }
}

Loader::~Loader() {
    end_workers();
}

void Loader::end_workers() {
    {
        std::lock_guard const lock(mutex_);
        stop_ = true;
    }
    changed_.notify_all();
    for (auto& worker : workers_) {
        worker.join();
    }
}

void Loader::work() {
    Scratch scratch;
    while (true) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stop_ || !free_.empty(); });
        if (stop_) {
            return;
        }
        auto const k = claimed_++;
        // Of a loader that is waited for, few slots are in use: large ones stay in the cache.
        place_of(k) = free_.back();
        free_.pop_back();
        auto& slot = slots_[place_of(k)];
        lock.unlock();
        slot.failure = nullptr;
        try {
            Scope const scope("reading a batch", k);
            fill(k, slot, scratch);
        } catch (...) {
            slot.failure = std::current_exception();
        }
        lock.lock();
        slot.ready = true;
        stop_ = stop_ || slot.last;
        lock.unlock();
        changed_.notify_all();
    }
}

void Loader::fill(std::int64_t k, Slot& slot, Scratch& scratch) const {
    auto indices = request_(k);
    slot.last = !indices.has_value();
    if (slot.last) {
        return;
    }
    slot.batch.indices = std::move(*indices);
    dataset_.read(slot.batch, scratch);
    if (finish_) {
        finish_(k, slot.batch);
    }
}

std::size_t& Loader::place_of(std::int64_t k) {
    return places_[static_cast<std::size_t>(k) % places_.size()];
}

Batch const& Loader::next() {
    std::unique_lock lock(mutex_);
    if (!ended_) {
        if (taken_ > 0) {
            auto const place = place_of(taken_ - 1);
            slots_[place].ready = false;
            free_.push_back(place);
        }
        ++taken_;
        changed_.notify_all();
        changed_.wait(lock,
                      [&] { return claimed_ >= taken_ && slots_[place_of(taken_ - 1)].ready; });
    }
    auto const& slot = slots_[place_of(taken_ - 1)];
    if (slot.failure) {
        std::rethrow_exception(slot.failure);
    }
    ended_ = slot.last;
    if (ended_) {
        throw Error(ExitCode::software, {"a batch was requested from a loader at its end",
                                         "the loader has already returned its last batch",
                                         "This is a bug; please report it"});
    }
    return slot.batch;
}

} // namespace lockstep::data
