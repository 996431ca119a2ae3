#include "activations.hpp"

#include "batches/evaluate.hpp"
#include "comm/agree.hpp"
#include "nn/evaluation_mode.hpp"

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "placement.hpp"

namespace lockstep::train {

namespace {

/// What tensors of this thread take on the host, while it is the thread's debug information.
class TensorBytes : public c10::MemoryReportingInfoBase {
  public:
    void reportMemoryUsage(void* /*memory*/, std::int64_t bytes, std::size_t /*allocated*/,
                           std::size_t /*reserved*/, c10::Device /*device*/) override {
        changes_.push_back(static_cast<double>(bytes));
    }
    bool memoryProfilingEnabled() const override { return true; }
    std::vector<double> const& changes() const noexcept { return changes_; }

  private:
    std::vector<double> changes_; ///< each tensor that is made or freed, one after the other
};

template <class Pass>
std::vector<double> changes_of(Pass const& pass, std::int64_t samples) {
    auto const bytes = std::make_shared<TensorBytes>();
    c10::DebugInfoGuard const guard(c10::DebugInfoKind::PROFILER_STATE, bytes);
    pass(samples);
    return bytes->changes();
}

double peak_of(std::vector<double> const& changes) {
    double now = 0;
    double peak = 0;
    for (auto const change : changes) {
        now += change;
        peak = std::max(peak, now);
    }
    return peak;
}

template <class Pass>
double peak_of_batch(Pass const& pass, std::int64_t batch) {
    pass(2); // makes what stays, such as gradients
    auto two = changes_of(pass, 2);
    auto const four = changes_of(pass, 4);
    auto const beyond = static_cast<double>(batch - 2) / 2;
    if (two.size() != four.size()) { // the operators differ
        auto const peak = peak_of(two);
        return std::max(peak + (peak_of(four) - peak) * beyond, 0.0);
    }
    // A large batch has its peak elsewhere than a small one: with many classes, in the loss, and
    // not where the gradients of the weights are made.
    for (std::size_t i = 0; i < two.size(); ++i) {
        two[i] += (four[i] - two[i]) * beyond;
    }
    return peak_of(two);
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
