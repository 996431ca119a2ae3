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

/// The arguments for all that is treated alike, within one part; the same in every step but for the
/// values of numbers.
struct KernelCall {
    EntryUpdate kind;
    KernelArguments with{};
};

/// A number that kernels read on the device.
class DeviceNumber {
  public:
    torch::Tensor const& set(double value, torch::Device device) {
        if (number_.defined()) {
            number_.fill_(value);
        } else {
            number_ = torch::full({}, value, torch::TensorOptions(torch::kFloat32).device(device));
        }
        return number_;
    }
    torch::Tensor const& get() const { return number_; }

  private:
    torch::Tensor number_;
};

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

    void update(UpdateArrays const& arrays, UpdateStep const& step) override {
        torch::NoGradGuard const no_grad;
        auto const device = arrays.parameters.device();
        auto const rest = step.idle.empty() ? std::vector<Shard>{} : runs_of(shards_, step.idle);
        auto const& runs = step.idle.empty() ? runs_ : rest;
        for (auto const& run : runs) {
            steps_[run.begun_after].set(static_cast<double>(step.step - run.begun_after), device);
        }
        std::optional<torch::Tensor> divisor;
        if (step.divisor != 1) {
            divisor = divisor_.set(step.divisor, device);
        }
        if (!step.idle.empty() || addresses_of(arrays) != kept_for_ ||
            std::ssize(kept_) != parts_on(device)) {
            kept_.assign(static_cast<std::size_t>(parts_on(device)), {});
            kept_for_ = step.idle.empty() ? addresses_of(arrays) : std::vector<void const*>{};
        }
        parallel_parts(device, [&](std::int64_t part, std::int64_t parts) {
            auto& calls = kept_[static_cast<std::size_t>(part)];
            if (calls.empty()) {
                calls = calls_of(arrays, runs, part, parts);
            }
            for (auto& [kind, with] : calls) {
                with.divisor = divisor;
                with.rate = step.rate * kind.rate;
                with.decay = kind.decay;
                kernel_(options_, with);
            }
        });
    }

  private:
    static std::vector<void const*> addresses_of(UpdateArrays const& arrays) {
        std::vector<void const*> addresses{arrays.parameters.const_data_ptr(),
                                           arrays.gradients.const_data_ptr()};
        for (auto const& state : arrays.states) {
            addresses.push_back(state.const_data_ptr());
        }
        return addresses;
    }

    std::vector<KernelCall> calls_of(UpdateArrays const& arrays, std::vector<Shard> const& runs,
                                     std::int64_t part, std::int64_t parts) {
        std::vector<KernelCall> calls;
        for (auto const& kind : kinds_) {
            KernelCall call{.kind = kind};
            call.with.states.resize(arrays.states.size());
            for (auto const& run : runs) {
                auto const [first, last] = part_of(run.count, part, parts);
                if (run.update == kind && first < last) {
                    add(call.with, arrays, run, {first, last});
                    call.with.steps.push_back(steps_.at(run.begun_after).get());
                }
            }
            if (!call.with.parameters.empty()) {
                calls.push_back(std::move(call));
            }
        }
        return calls;
    }

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
    std::map<std::int64_t, DeviceNumber> steps_; ///< of entries, by those before their first
    DeviceNumber divisor_;
    std::vector<std::vector<KernelCall>> kept_; ///< by part: hundreds of views are slow to make
    std::vector<void const*> kept_for_; ///< the arrays' addresses; empty: for this step alone
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
