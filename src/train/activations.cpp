#include "activations.hpp"

#include "comm/agree.hpp"
#include "nn/evaluation_mode.hpp"
#include "train/evaluate.hpp"

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <memory>

#include "placement.hpp"

namespace lockstep::train {

namespace {

/// What tensors of this thread take on the host, while it is the thread's debug information.
class TensorBytes : public c10::MemoryReportingInfoBase {
  public:
    void reportMemoryUsage(void* /*memory*/, std::int64_t bytes, std::size_t /*allocated*/,
                           std::size_t /*reserved*/, c10::Device /*device*/) override {
        now_ += bytes;
        peak_ = std::max(peak_, now_);
    }
    bool memoryProfilingEnabled() const override { return true; }
    double peak() const noexcept { return static_cast<double>(peak_); }

  private:
    std::int64_t now_ = 0;
    std::int64_t peak_ = 0;
};

template <class Pass>
double peak_of(Pass const& pass, std::int64_t samples) {
    auto const bytes = std::make_shared<TensorBytes>();
    c10::DebugInfoGuard const guard(c10::DebugInfoKind::PROFILER_STATE, bytes);
    pass(samples);
    return bytes->peak();
}

template <class Pass>
double peak_of_batch(Pass const& pass, std::int64_t batch) {
    pass(2); // makes what stays, such as gradients
    auto const two = peak_of(pass, 2);
    auto const of_sample = (peak_of(pass, 4) - two) / 2;
    return std::max(two + of_sample * static_cast<double>(batch - 2), 0.0);
}

} // namespace

std::optional<double> activation_bytes(config::Deck const& deck, Workload const& work) {
    if (work.train == nullptr || deck.communication.sync_batch_norm) {
        return std::nullopt; // episodes are played, and layers communicate, in a run only
    }
    auto samples = work.samples;
    samples.targets = batch_targets(work);
    auto const train = [&](std::int64_t count) {
        work.task->training_loss(*work.model, zero_batch(samples, count, torch::kCPU))
            .sum.backward();
    };
    auto const evaluate = [&](std::int64_t count) {
        torch::NoGradGuard const no_grad;
        nn::EvaluationMode const evaluation(*work.model);
        work.task->evaluate(*work.model, zero_batch(samples, count, torch::kCPU));
    };
    double bytes = 0;
    auto const failure = comm::failure_of([&] {
        bytes = peak_of_batch(train, deck.data.batch);
        if (!deck.data.validation.empty() || !deck.data.test.empty()) {
            bytes = std::max(bytes, peak_of_batch(evaluate, EvaluateOptions().batch));
        }
    });
    return failure ? std::nullopt : std::optional(bytes);
}

} // namespace lockstep::train
