#include "optimizer/pruning.hpp"

#include "arena/whole_array.hpp"
#include "optimizer/optimizer.hpp"

#include <numeric>

namespace lockstep::train {

Pruning::Pruning(config::Prune const& prune, Layout const& layout, torch::Tensor const& parameters,
                 std::vector<Range> owned)
    : prune_(prune), layout_(layout), schedule_(prune), owned_(std::move(owned)) {
    auto const count = std::accumulate(owned_.begin(), owned_.end(), std::int64_t{0},
                                       [](auto sum, Range range) { return sum + range.count(); });
    auto const options = torch::TensorOptions().device(parameters.device());
    if (prune_.pattern != "channels") {
        pruned_entries(prune_, layout_); // what cannot be is told now
        removed_ = torch::zeros({count}, options.dtype(torch::kBool));
    }
    if (prune_.score == "taylor") {
        scores_ = torch::zeros({count}, options.dtype(torch::kFloat32));
    }
}

template <class Action>
void Pruning::for_each_owned(Action const& action) const {
    std::int64_t own = 0;
    for (auto const range : owned_) {
        action(range, own);
        own += range.count();
    }
}

torch::Tensor Pruning::scores(torch::Tensor const& parameters, GatherSums const& gather) const {
    torch::NoGradGuard const no_grad;
    return scores_.defined() ? whole_of(scores_, owned_, layout_.size, gather)
                             : parameters.abs().cpu();
}

PruneMask Pruning::choose(torch::Tensor const& parameters, std::int64_t steps,
                          GatherSums const& gather) const {
    auto const scores = this->scores(parameters, gather);
    return prune_mask(prune_, layout_,
                      {scores.const_data_ptr<float>(), static_cast<std::size_t>(scores.numel())},
                      schedule_.share_at(steps));
}

void Pruning::remove(PruneMask const& mask, torch::Tensor const& parameters,
                     SliceOptimizer const& optimizer) {
    torch::NoGradGuard const no_grad;
    auto const chosen =
        torch::from_blob(const_cast<char*>(mask.removed.data()), {layout_.size}, torch::kChar)
            .to(parameters.device(), torch::kBool);
    for_each_owned([&](Range range, std::int64_t own) {
        auto const count = range.count();
        auto removed = removed_.narrow(0, own, count);
        removed.logical_or_(chosen.narrow(0, range.first, count));
        parameters.narrow(0, range.first, count).masked_fill_(removed, 0);
    });
    for (std::size_t i = 0; i < optimizer.state_names().size(); ++i) {
        torch::Tensor(optimizer.state(i)).masked_fill_(removed_, 0);
    }
    if (scores_.defined()) {
        scores_.zero_();
    }
}

void Pruning::before_update(torch::Tensor const& parameters, torch::Tensor const& gradients,
                            double divisor, std::int64_t steps) const {
    torch::NoGradGuard const no_grad;
    bool const scoring = scores_.defined() && steps < schedule_.last();
    for_each_owned([&](Range range, std::int64_t own) {
        auto const count = range.count();
        auto gradient = gradients.narrow(0, range.first, count);
        if (removed_.defined()) {
            gradient.masked_fill_(removed_.narrow(0, own, count), 0);
        }
        if (scoring) {
            auto change = gradient * parameters.narrow(0, range.first, count);
            change.mul_(1 / divisor);
            scores_.narrow(0, own, count).add_(change.mul_(change));
        }
    });
}

std::vector<std::pair<std::string, torch::Tensor>> Pruning::state() const {
    std::vector<std::pair<std::string, torch::Tensor>> arrays;
    if (removed_.defined()) {
        arrays.emplace_back("removed", removed_);
    }
    if (scores_.defined()) {
        arrays.emplace_back("scores", scores_);
    }
    return arrays;
}

} // namespace lockstep::train
