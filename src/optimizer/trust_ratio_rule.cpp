#include "arena/entry_norms.hpp"
#include "arena/parallel_parts.hpp"
#include "nn/to_device.hpp"

#include <algorithm>
#include <utility>

#include "shard.hpp"
#include "update_rule.hpp"

namespace lockstep::train {

namespace {

/// The elements of a shard, as views.
struct Views {
    torch::Tensor weights;
    torch::Tensor gradients;
    std::vector<torch::Tensor> states;
};

/// A step of one entry.
struct EntryStep {
    double rate = 0;
    double decay = 0;
    double divisor = 1;
    std::int64_t step = 1;
};

torch::Tensor scalar(double value, torch::Tensor const& like) {
    return torch::full({}, value, torch::TensorOptions(torch::kFloat32).device(like.device()));
}

/// What lars and lamb differ in. The first look at the arrays is for the norms of the weights and
/// of what stands in the place of the gradients, the second moves the weights.
struct Rule {
    virtual ~Rule() = default;
    /// Takes the gradients into the state; what follows from them may take their place.
    virtual void prepare(Views const& of, EntryStep const& step) const = 0;
    /// The factor of an entry's rate, from the two norms, neither of them 0.
    virtual double trust(double weights, double gradients, EntryStep const& step) const = 0;
    virtual void move(Views const& of, double trust, EntryStep const& step) const = 0;
};

/// Algorithm 2 of arXiv 1904.00962, with bias correction.
class Lamb final : public Rule {
  public:
    explicit Lamb(config::Optimizer const& options) : options_(options) {}

    /// The change that Adam makes to zeros at a rate of -1, and the decay, replace the gradients.
    void prepare(Views const& of, EntryStep const& step) const override {
        auto const change = torch::zeros_like(of.gradients);
        at::_fused_adam_({change}, {of.gradients}, {of.states[0]}, {of.states[1]}, {},
                         {scalar(static_cast<double>(step.step), change)}, /*lr=*/-1,
                         options_.betas[0], options_.betas[1], /*weight_decay=*/0, options_.epsilon,
                         /*amsgrad=*/false, /*maximize=*/false, scalar(step.divisor, change));
        of.gradients.copy_(step.decay == 0 ? change : change.add_(of.weights, step.decay));
    }
    double trust(double weights, double change, EntryStep const&) const override {
        return weights / change;
    }
    void move(Views const& of, double trust, EntryStep const& step) const override {
        of.weights.sub_(of.gradients, step.rate * trust);
    }

  private:
    config::Optimizer options_;
};

/// Algorithm 1 of arXiv 1708.03888: the rate is a factor of the velocity.
class Lars final : public Rule {
  public:
    explicit Lars(config::Optimizer const& options) : options_(options) {}

    void prepare(Views const&, EntryStep const&) const override {}
    double trust(double weights, double gradients, EntryStep const& step) const override {
        return options_.trust_coefficient * weights /
               (gradients / step.divisor + step.decay * weights);
    }
    /// As SGD moves them at a rate of 1, where the rate is in gradients and decay.
    void move(Views const& of, double trust, EntryStep const& step) const override {
        double const rate = step.rate * trust;
        std::vector<torch::Tensor> velocity;
        if (options_.momentum > 0) {
            velocity.push_back(of.states[0]);
        }
        at::_fused_sgd_({of.weights}, {of.gradients}, velocity, rate * step.decay,
                        options_.momentum,
                        /*lr=*/1.0, /*dampening=*/0, /*nesterov=*/false, /*maximize=*/false,
                        /*is_first_step=*/false, scalar(step.divisor / rate, of.weights));
    }

  private:
    config::Optimizer options_;
};

class TrustRatioRule final : public UpdateRule {
  public:
    TrustRatioRule(std::unique_ptr<Rule> rule, Layout const& layout,
                   std::vector<Shard> const& shards)
        : shards_(shards), segments_(layout), rule_(std::move(rule)) {}

    void update(UpdateArrays const& arrays, UpdateStep const& step) override {
        auto const chunks = chunks_for(arrays.parameters.device(), step.idle);
        auto const trust = trust_of_entries(arrays, step, chunks);
        for_each(chunks, arrays, [&](Shard const& shard, Views const& views) {
            rule_->move(views, trust[shard.entry], step_of(shard, step));
        });
    }

  private:
    static EntryStep step_of(Shard const& shard, UpdateStep const& step) {
        return {.rate = step.rate * shard.update.rate,
                .decay = shard.update.decay,
                .divisor = step.divisor,
                .step = step.step - shard.begun_after};
    }

    /// The shards, cut at reduction blocks into chunks whose temporaries stay in a processor's
    /// cache, or do not count beside a device's memory.
    std::vector<Shard> chunks_for(torch::Device device, std::vector<char> const& idle) const {
        auto const max = (device.is_cpu() ? 8 : 1024) * reduction_block;
        std::vector<Shard> chunks;
        for (auto shard : shards_) {
            bool const rests = !idle.empty() && idle[shard.entry] != 0;
            while (shard.count > 0 && !rests) {
                auto chunk = shard;
                chunk.count = std::min(shard.count, max - shard.first % reduction_block);
                chunks.push_back(chunk);
                shard.first += chunk.count;
                shard.own += chunk.count;
                shard.count -= chunk.count;
            }
        }
        return chunks;
    }

    template <class Action>
    static void for_each(std::vector<Shard> const& chunks, UpdateArrays const& arrays,
                         Action const& action) {
        parallel_parts(arrays.parameters.device(), [&](std::int64_t part, std::int64_t parts) {
            for (auto i = part; i < static_cast<std::int64_t>(chunks.size()); i += parts) {
                auto const& shard = chunks[static_cast<std::size_t>(i)];
                Views views{arrays.parameters.narrow(0, shard.first, shard.count),
                            arrays.gradients.narrow(0, shard.first, shard.count),
                            {}};
                for (auto const& state : arrays.states) {
                    views.states.push_back(state.narrow(0, shard.own, shard.count));
                }
                action(shard, views);
            }
        });
    }

    std::vector<double> trust_of_entries(UpdateArrays const& arrays, UpdateStep const& step,
                                         std::vector<Shard> const& chunks) const {
        auto const owned = shards_.empty() ? 0 : shards_.back().own + shards_.back().count;
        auto const squares =
            torch::zeros({2, owned / arena_unit},
                         torch::TensorOptions(torch::kFloat64).device(arrays.parameters.device()));
        for_each(chunks, arrays, [&](Shard const& shard, Views const& views) {
            rule_->prepare(views, step_of(shard, step));
            auto const write = [&](torch::Tensor const& values, std::int64_t row) {
                write_unit_squares(values, squares[row].narrow(0, shard.own / arena_unit,
                                                               shard.count / arena_unit));
            };
            if (!shard.update.exempt) { // norms that stay 0 mean a trust of 1
                write(views.weights, 0);
                write(views.gradients, 1);
            }
        });
        auto const on_host = nn::to_host(squares);
        auto sums = segment_sums(
            std::span(on_host.const_data_ptr<double>(), static_cast<std::size_t>(on_host.numel())));
        if (step.gather) {
            step.gather(sums);
        }
        auto const all = std::span<double const>(sums);
        auto const weights = segments_.norms(all.first(segments_.count()));
        auto const gradients = segments_.norms(all.last(segments_.count()));
        std::vector<double> trust(weights.size(), 1);
        for (auto const& shard : shards_) {
            auto const entry = shard.entry;
            if (weights[entry] > 0 && gradients[entry] > 0) {
                trust[entry] = rule_->trust(weights[entry], gradients[entry], step_of(shard, step));
            }
        }
        return trust;
    }

    /// Sums of the segments that are owned, 0 for the others.
    ///
    /// Shape  units [2, n]; returns [2, segments]
    std::vector<double> segment_sums(std::span<double const> units) const {
        std::vector<double> sums(2 * segments_.count(), 0);
        for (auto const& shard : shards_) {
            for (std::int64_t at = 0; at < shard.count; at += arena_unit) {
                auto const segment = segments_.of(shard.entry, shard.first + at);
                auto const unit = static_cast<std::size_t>((shard.own + at) / arena_unit);
                sums[segment] += units[unit];
                sums[segments_.count() + segment] += units[units.size() / 2 + unit];
            }
        }
        return sums;
    }

    std::vector<Shard> shards_;
    Segments segments_;
    std::unique_ptr<Rule> rule_;
};

} // namespace

std::unique_ptr<UpdateRule> lars_rule(config::Optimizer const& options, Layout const& layout,
                                      std::vector<Shard> const& shards) {
    return std::make_unique<TrustRatioRule>(std::make_unique<Lars>(options), layout, shards);
}

std::unique_ptr<UpdateRule> lamb_rule(config::Optimizer const& options, Layout const& layout,
                                      std::vector<Shard> const& shards) {
    return std::make_unique<TrustRatioRule>(std::make_unique<Lamb>(options), layout, shards);
}

} // namespace lockstep::train
