#include "injected_fault.hpp"

#include "arena/arena.hpp"
namespace lockstep::train {

InjectedFault::InjectedFault(int rank, std::int64_t step, nn::Model const& model)
    : damage_(inject_fault(rank, step)) {
    if (damage_ == Damage::nan) {
        poisoned_.emplace(model);
    }
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
