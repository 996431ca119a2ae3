#pragma once

#include "lockstep/data/dataset.hpp"

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace lockstep::data {

struct LoaderOptions {
    int workers = 2;
    int prefetch = 4; ///< batches that are made in advance
    /// What a worker does to batch k after reading it. Called from several threads; depends only on
    /// k and the batch.
    std::function<void(std::int64_t k, Batch& batch)> finish{};
};

/// Makes batches in advance on threads and hands them out in order, the same whatever the number of
/// workers. One thread calls `next`.
class Loader {
  public:
    /// The samples of batch k; none after the last. Called from several threads: a pure function.
    using Request = std::function<std::optional<std::vector<std::int64_t>>(std::int64_t k)>;

    /// `dataset` must outlive the loader.
    Loader(Dataset const& dataset, Request request, LoaderOptions const& options);
    Loader(Loader const&) = delete;
    Loader& operator=(Loader const&) = delete;
    ~Loader();

    /// The next batch, k = 0, 1, 2, …; valid until the next call.
    ///
    /// Throws  the error of the worker that made it; Error 70 after the last batch
    Batch const& next();

  private:
    struct Slot {
        Batch batch;
        std::exception_ptr failure;
        bool ready = false;
        bool last = false; ///< there is no batch here, nor after it
    };

    void work();
    void end_workers();
    std::size_t& place_of(std::int64_t k);
    void fill(std::int64_t k, Slot& slot, Scratch& scratch) const;

    Dataset const& dataset_;
    Request request_;
    std::function<void(std::int64_t k, Batch& batch)> finish_;
    std::vector<Slot> slots_;
    std::vector<std::size_t> free_;   ///< slots without a batch; the last one used is last
    std::vector<std::size_t> places_; ///< slots of the batches that are ready, by k
    std::mutex mutex_;
    std::condition_variable changed_;
    std::int64_t claimed_ = 0; ///< batches that a worker has started
    std::int64_t taken_ = 0;   ///< batches that were handed out, the one in use included
    bool ended_ = false;       ///< the last batch was handed out
    bool stop_ = false;
    std::vector<std::thread> workers_;
};

} // namespace lockstep::data
