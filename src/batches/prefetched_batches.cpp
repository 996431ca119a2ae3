#include "prefetched_batches.hpp"

#include "base/recorder.hpp"
#include "batches/loaded_batches.hpp"

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

namespace lockstep::train {

namespace {

// One in use, one that is there: more would only take memory of the device.
constexpr std::size_t batches_ahead = 1;

/// A batch, or why there is none.
struct Staged {
    task::Tensors tensors;
    std::optional<c10::Event> copied; ///< on a GPU: its copies are made
    std::exception_ptr failure;
};

std::optional<c10::Stream> stream_beside(torch::Device device) {
    if (device.is_cpu()) {
        return std::nullopt;
    }
    return c10::impl::VirtualGuardImpl(device.type())
        .getStreamFromGlobalPool(device, /*isHighPriority=*/false);
}

void use_on(c10::Stream const& stream, nn::Fields const& fields) {
    for (auto const& field : fields) {
        field.values.record_stream(stream); // its memory is of the other stream's pool
    }
}

} // namespace

class PrefetchedBatches::Line {
  public:
    Line(data::Loader& loader, std::vector<data::FieldInfo> inputs,
         std::vector<data::FieldInfo> targets, torch::Device device)
        : loader_(loader), inputs_(std::move(inputs)), targets_(std::move(targets)),
          device_(device), beside_(stream_beside(device)),
          thread_([this, recorder = Recorder::of_this_thread()](std::stop_token const& stop) {
              Recorder::Join const joined(recorder, "prefetch");
              run(stop);
          }) {}

    task::Tensors take();

  private:
    void run(std::stop_token const& stop);
    Staged make();

    data::Loader& loader_;
    std::vector<data::FieldInfo> inputs_;
    std::vector<data::FieldInfo> targets_;
    torch::Device device_;
    std::optional<c10::Stream> beside_; ///< the copies' own; none on the CPU
    std::mutex mutex_;
    std::condition_variable_any changed_;
    std::deque<Staged> staged_;
    std::jthread thread_; ///< last: it uses all of the above
};

void PrefetchedBatches::Line::run(std::stop_token const& stop) {
    while (!stop.stop_requested()) {
        auto staged = make();
        bool const failed = staged.failure != nullptr;
        std::unique_lock lock(mutex_);
        staged_.push_back(std::move(staged));
        changed_.notify_all();
        if (failed) {
            return; // there is nothing after it
        }
        changed_.wait(lock, stop, [this] { return staged_.size() < batches_ahead; });
    }
}

Staged PrefetchedBatches::Line::make() {
    Staged staged;
    try {
        auto const& batch = loader_.next();
        Scope const scope("copying a batch");
        c10::OptionalStreamGuard const guard(beside_);
        staged.tensors = to_tensors(batch, inputs_, targets_, device_);
        if (beside_) {
            staged.copied.emplace(device_.type());
            staged.copied->record(*beside_);
        }
    } catch (...) {
        staged.failure = std::current_exception();
    }
    return staged;
}

task::Tensors PrefetchedBatches::Line::take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !staged_.empty(); });
    if (staged_.front().failure) {
        std::rethrow_exception(staged_.front().failure);
    }
    auto staged = std::move(staged_.front());
    staged_.pop_front();
    lock.unlock();
    changed_.notify_all();
    if (staged.copied) {
        auto const now = c10::impl::VirtualGuardImpl(device_.type()).getStream(device_);
        staged.copied->block(now);
        use_on(now, staged.tensors.inputs);
        use_on(now, staged.tensors.targets);
    }
    return std::move(staged.tensors);
}

PrefetchedBatches::PrefetchedBatches(data::Loader& loader,
                                     std::vector<data::FieldInfo> const& inputs,
                                     std::vector<data::FieldInfo> const& targets,
                                     torch::Device device)
    : line_(std::make_unique<Line>(loader, inputs, targets, device)) {}

PrefetchedBatches::~PrefetchedBatches() = default;

task::Tensors PrefetchedBatches::next() {
    return line_->take();
}

} // namespace lockstep::train
