#include "arena/parallel_parts.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "shard.hpp"
#include "update_rule.hpp"

namespace lockstep::train {

namespace {

/// Arguments of one call of a fused kernel.
struct KernelArguments {
    std::vector<torch::Tensor> parameters;
    std::vector<torch::Tensor> gradients;
    std::vector<std::vector<torch::Tensor>> states;
    std::vector<torch::Tensor> steps;
    std::optional<torch::Tensor> divisor; ///< absent: 1, which spares the kernel a write
    double rate = 0;
    double decay = 0;
};

using Kernel = void (*)(config::Optimizer const& options, KernelArguments const& with);

void apply_sgd(config::Optimizer const& options, KernelArguments const& with) {
    at::_fused_sgd_(with.parameters, with.gradients,
                    options.momentum > 0 ? with.states[0] : std::vector<torch::Tensor>{},
                    with.decay, options.momentum, with.rate, /*dampening=*/0, options.nesterov,
                    /*maximize=*/false, /*is_first_step=*/false, with.divisor);
}

template <class Call>
void apply_moments(config::Optimizer const& options, KernelArguments const& with,
                   Call const& kernel) {
    std::vector<torch::Tensor> const no_maxima; // amsgrad's
    kernel(with.parameters, with.gradients, with.states[0], with.states[1], no_maxima, with.steps,
           with.rate, options.betas[0], options.betas[1], with.decay, options.epsilon,
           /*amsgrad=*/false, /*maximize=*/false, with.divisor);
}

void apply_adam(config::Optimizer const& options, KernelArguments const& with) {
    apply_moments(options, with, [](auto const&... arguments) { at::_fused_adam_(arguments...); });
}

void apply_adamw(config::Optimizer const& options, KernelArguments const& with) {
    apply_moments(options, with, [](auto const&... arguments) { at::_fused_adamw_(arguments...); });
}

class FusedRule final : public UpdateRule {
  public:
    FusedRule(config::Optimizer const& options, Kernel kernel, std::vector<Shard> const& shards)
        : options_(options), kernel_(kernel), shards_(shards), runs_(runs_of(shards, {})) {
        for (auto const& shard : shards) {
            if (std::ranges::find(kinds_, shard.update) == kinds_.end()) {
                kinds_.push_back(shard.update);
            }
        }
    }

    void update(UpdateArrays const& arrays, UpdateStep const& step) const override {
        auto const runs = step.idle.empty() ? runs_ : runs_of(shards_, step.idle);
        auto const scalar = [&](double value) {
            return torch::full(
                {}, value,
                torch::TensorOptions(torch::kFloat32).device(arrays.parameters.device()));
        };
        std::map<std::int64_t, torch::Tensor> counts; // of steps, by those before the first
        for (auto const& run : runs) {
            auto const [count, is_new] = counts.try_emplace(run.begun_after);
            if (is_new) {
                count->second = scalar(static_cast<double>(step.step - run.begun_after));
            }
        }
        std::optional<torch::Tensor> divisor;
        if (step.divisor != 1) {
            divisor = scalar(step.divisor);
        }
        parallel_parts(arrays.parameters.device(), [&](std::int64_t part, std::int64_t parts) {
            for (auto const& kind : kinds_) {
                KernelArguments with;
                with.states.resize(arrays.states.size());
                with.divisor = divisor;
                with.rate = step.rate * kind.rate;
                with.decay = kind.decay;
                for (auto const& run : runs) {
                    auto const [first, last] = part_of(run.count, part, parts);
                    if (run.update == kind && first < last) {
                        add(with, arrays, run, {first, last});
                        with.steps.push_back(counts.at(run.begun_after));
                    }
                }
                if (!with.parameters.empty()) {
                    kernel_(options_, with);
                }
            }
        });
    }

  private:
    static std::vector<Shard> runs_of(std::vector<Shard> const& shards,
                                      std::vector<char> const& idle) {
        std::vector<Shard> runs;
        for (auto const& shard : shards) {
            if (!idle.empty() && idle[shard.entry] != 0) {
                continue;
            }
            bool const continues = !runs.empty() && runs.back().update == shard.update &&
                                   runs.back().begun_after == shard.begun_after &&
                                   runs.back().first + runs.back().count == shard.first;
            if (continues) {
                runs.back().count += shard.count;
            } else {
                runs.push_back(shard);
            }
        }
        return runs;
    }

    static void add(KernelArguments& to, UpdateArrays const& arrays, Shard const& run,
                    Range within) {
        auto const count = within.last - within.first;
        to.parameters.push_back(arrays.parameters.narrow(0, run.first + within.first, count));
        to.gradients.push_back(arrays.gradients.narrow(0, run.first + within.first, count));
        for (std::size_t i = 0; i < arrays.states.size(); ++i) {
            to.states[i].push_back(arrays.states[i].narrow(0, run.own + within.first, count));
        }
    }

    config::Optimizer options_;
    Kernel kernel_;
    std::vector<Shard> shards_;
    std::vector<Shard> runs_; ///< neighbouring shards that are treated alike
    std::vector<EntryUpdate> kinds_;
};

} // namespace

std::unique_ptr<UpdateRule> adamw_rule(config::Optimizer const& options, Layout const& /*layout*/,
                                       std::vector<Shard> const& shards) {
    return std::make_unique<FusedRule>(options, apply_adamw, shards);
}

std::unique_ptr<UpdateRule> adam_rule(config::Optimizer const& options, Layout const& /*layout*/,
                                      std::vector<Shard> const& shards) {
    return std::make_unique<FusedRule>(options, apply_adam, shards);
}

std::unique_ptr<UpdateRule> sgd_rule(config::Optimizer const& options, Layout const& /*layout*/,
                                     std::vector<Shard> const& shards) {
    return std::make_unique<FusedRule>(options, apply_sgd, shards);
}

} // namespace lockstep::train
