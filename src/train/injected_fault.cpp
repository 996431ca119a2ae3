#include "injected_fault.hpp"

#include "arena/arena.hpp"

#include <atomic>
#include <limits>
#include <utility>
#include <vector>

namespace lockstep::train {

namespace {

/// Gives each target the input of another sample.
class WrongBatches : public BatchSource {
  public:
    explicit WrongBatches(BatchSource& right) : right_(right) {}
    explicit WrongBatches(std::unique_ptr<BatchSource> right)
        : owned_(std::move(right)), right_(*owned_) {}

    task::Tensors next() override {
        auto batch = right_.next();
        std::vector<nn::Field> inputs;
        for (auto const& field : batch.inputs) {
            inputs.push_back({field.values.roll(1, 0), field.lengths});
        }
        return {nn::Fields(std::move(inputs)), batch.targets};
    }

  private:
    std::unique_ptr<BatchSource> owned_;
    BatchSource& right_;
};

torch::Tensor not_a_number(torch::Tensor const& gradient) {
    return torch::full_like(gradient, std::numeric_limits<float>::quiet_NaN());
}

/// The upper half of a mantissa begins with this bit.
torch::Tensor flipped(torch::Tensor const& gradient, std::int64_t number) {
    constexpr std::int64_t stride = 7919; // another element each time: two flips of one may cancel
    auto copy = gradient.clone(at::MemoryFormat::Contiguous);
    auto const choice = copy.view({-1}).nonzero().view({-1}); // a zero would become denormal
    auto const at = choice.numel() == 0
                        ? std::int64_t{0}
                        : choice[number * stride % choice.numel()].item<std::int64_t>();
    copy.view({-1}).narrow(0, at, 1).view(torch::kInt32).bitwise_xor_(1 << 22);
    return copy;
}

} // namespace

InjectedFault::InjectedFault(int rank, std::int64_t step, nn::Model const& model)
    : damage_(inject_fault(rank, step)) {
    if (damage_ == Damage::nan) {
        poisoned_.emplace(model, PoisonedGradient::Which::next, not_a_number);
    } else if (damage_ == Damage::gradient_flip || damage_ == Damage::gradient_flips) {
        poisoned_.emplace(
            model,
            damage_ == Damage::gradient_flip ? PoisonedGradient::Which::next
                                             : PoisonedGradient::Which::first_of_all,
            [number = std::make_shared<std::atomic<std::int64_t>>(step)](
                torch::Tensor const& gradient) { return flipped(gradient, (*number)++); });
    }
}

BatchSource& InjectedFault::read(BatchSource& right) {
    if (damage_ != Damage::wrong_batch) {
        return right;
    }
    wrong_ = std::make_unique<WrongBatches>(right);
    return *wrong_;
}

std::optional<ComputeCheck::Due> InjectedFault::read(std::optional<ComputeCheck::Due> right) const {
    if (right && damage_ == Damage::wrong_batch) {
        right->batches = [read = std::move(right->batches)](int replica) {
            return std::make_unique<WrongBatches>(read(replica));
        };
    }
    return right;
}

void InjectedFault::end_step(std::function<Arena const&()> const& whole) const {
    if (damage_ == Damage::bit_flip) {
        torch::NoGradGuard const no_grad;
        auto const& arena = whole();
        auto const bits = arena.parameters().narrow(0, 0, 1).view(torch::kInt32);
        bits.bitwise_xor_(1 << 12);
        arena.refresh();
    }
}

} // namespace lockstep::train
