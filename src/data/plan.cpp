#include "data/plan.hpp"

#include "base/random.hpp"
#include "base/text.hpp"
#include "data/order.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <numeric>

namespace lockstep::data {

namespace {

/// Part `which` of `parts` nearly equal parts of `count`.
Span share(std::int64_t count, std::int64_t which, std::int64_t parts) {
    auto const first = count * which / parts;
    return {first, count * (which + 1) / parts - first};
}

} // namespace

TrainPlan::TrainPlan(PlanOptions const& options)
    : options_(options), micro_samples_(options.batch * options.replicas),
      step_samples_(micro_samples_ * options.accumulate), learnt_(options.samples) {
    if (options.samples < fewest_samples()) {
        throw Error(ExitCode::usage,
                    {concat(amount_of(options.samples, "training sample"), " for ",
                            amount_of(options.replicas, "replica")),
                     "each replica needs at least two samples",
                     options.samples < 2   ? std::string("Add samples")
                     : options.samples < 4 ? std::string("Set run.replicas = 1, or add samples")
                                           : concat("Set run.replicas to at most ",
                                                    options.samples / 2, ", or add samples")});
    }
    if (options.bucket > 0 && options.shuffle == Shuffle::block) {
        throw Error(ExitCode::usage,
                    {"data.bucket-by-length cannot be combined with data.shuffle = block",
                     "sorting by length would spread the samples of a block over "
                     "batches that are far apart",
                     "Set data.shuffle = full, or data.bucket-by-length = 0"});
    }
    if (options.weighted && options.shuffle != Shuffle::full) {
        throw Error(ExitCode::usage,
                    {concat("data.sample-weights cannot be combined with data.shuffle = ",
                            options.shuffle == Shuffle::block ? "block" : "none"),
                     "samples are drawn by weight from the whole training set",
                     "Set data.shuffle = full, which is the default, or leave out "
                     "data.sample-weights"});
    }
    steps_ = learnt_ / step_samples_;
    auto const rest = learnt_ % step_samples_;
    if (options.drawn) {
        if (steps_ == 0) {
            throw Error(ExitCode::usage,
                        {concat("each step would draw ", step_samples_, " of ", options.samples,
                                " samples"),
                         "with privacy.noise, a step draws each sample at most once",
                         "Lower data.batch, optimizer.accumulate or run.replicas"});
        }
        learnt_ -= rest;
    } else if (options.drop_last) {
        learnt_ -= rest;
        if (steps_ == 0) {
            throw Error(
                ExitCode::usage,
                {concat("data.drop-last = true would leave out all ", options.samples, " samples"),
                 concat("a step needs ", step_samples_, " samples"),
                 "Set data.drop-last = false, or lower data.batch (or data.global-batch) or "
                 "optimizer.accumulate"});
        }
    } else if (rest >= fewest_samples() || (rest > 0 && steps_ == 0)) {
        ++steps_;
    }
}

std::int64_t TrainPlan::samples_in_step(std::int64_t step) const {
    return step + 1 < steps_ ? step_samples_ : learnt_ - step * step_samples_;
}

int TrainPlan::micro_batches(std::int64_t step) const {
    auto const full = samples_in_step(step) / micro_samples_;
    auto const rest = samples_in_step(step) % micro_samples_;
    // A rest that is too small joins the micro-batch before it, as a step's does.
    bool const own = rest >= fewest_samples() || (rest > 0 && full == 0);
    return static_cast<int>(std::min<std::int64_t>(full + (own ? 1 : 0), options_.accumulate));
}

Span TrainPlan::part(std::int64_t step, int micro, int replica) const {
    auto const begin = step * step_samples_ + micro * micro_samples_;
    bool const last_micro = micro + 1 == micro_batches(step);
    auto const count = last_micro ? samples_in_step(step) - micro * micro_samples_ : micro_samples_;
    auto const own = share(count, replica, options_.replicas);
    return {begin + own.first, own.count};
}

std::vector<std::int64_t> TrainPlan::indices(std::int64_t epoch, Span positions) const {
    if (options_.drawn) {
        return of_draw(epoch, positions);
    }
    return options_.bucket > 0 ? in_buckets(epoch, positions) : in_order(epoch, positions);
}

/// Takes as large a share of the samples that the step draws as these positions are of the step's.
std::vector<std::int64_t> TrainPlan::of_draw(std::int64_t epoch, Span positions) const {
    auto const drawn = options_.drawn->draw(epoch * steps_ + positions.first / step_samples_);
    auto const count = static_cast<std::int64_t>(drawn->size());
    auto const first = positions.first % step_samples_;
    return {drawn->begin() + count * first / step_samples_,
            drawn->begin() + count * (first + positions.count) / step_samples_};
}

std::vector<std::int64_t> TrainPlan::in_buckets(std::int64_t epoch, Span positions) const {
    auto const length = options_.bucket * micro_samples_;
    auto const end = positions.first + positions.count;
    std::vector<std::int64_t> samples;
    for (auto first = positions.first / length * length; first < end; first += length) {
        // What drop-last leaves out is left out by the order, not for its length.
        auto const sorted = window(epoch, {first, std::min(length, learnt_ - first)});
        auto const from = std::max<std::int64_t>(positions.first - first, 0);
        auto const to = std::min(end - first, static_cast<std::int64_t>(sorted.size()));
        samples.insert(samples.end(), sorted.begin() + from, sorted.begin() + to);
    }
    return samples;
}

/// A window's samples by length, and then its whole micro-batches in an order of their own: else
/// every window would begin with the short ones.
std::vector<std::int64_t> TrainPlan::window(std::int64_t epoch, Span positions) const {
    auto samples = in_order(epoch, positions);
    auto const& lengths = *options_.lengths;
    std::stable_sort(samples.begin(), samples.end(), [&](std::int64_t a, std::int64_t b) {
        return lengths[static_cast<std::size_t>(a)] < lengths[static_cast<std::size_t>(b)];
    });
    auto const whole = positions.count / micro_samples_;
    if (whole < 2) {
        return samples;
    }
    Permutation const order(
        whole, random_key(options_.seed, Stream::order,
                          {static_cast<std::uint64_t>(epoch),
                           static_cast<std::uint64_t>(positions.first / micro_samples_) + 1}));
    auto const sorted = samples;
    for (std::int64_t i = 0; i < whole; ++i) {
        auto const from = sorted.begin() + order(i) * micro_samples_;
        std::copy(from, from + micro_samples_, samples.begin() + i * micro_samples_);
    }
    return samples;
}

/// The samples at these positions of the epoch's order as it is before buckets.
std::vector<std::int64_t> TrainPlan::in_order(std::int64_t epoch, Span positions) const {
    auto const stream = options_.weighted ? Stream::weights : Stream::order;
    auto const key = random_key(options_.seed, stream, {static_cast<std::uint64_t>(epoch)});
    std::vector<std::int64_t> samples(static_cast<std::size_t>(positions.count));
    if (options_.weighted) {
        options_.weighted->draw(key, positions, samples);
        return samples;
    }
    std::iota(samples.begin(), samples.end(), positions.first);
    if (options_.shuffle == Shuffle::full) {
        Permutation const order(options_.samples, key);
        std::transform(samples.begin(), samples.end(), samples.begin(), order);
    } else if (options_.shuffle == Shuffle::block) {
        BlockPermutation const order(options_.samples, key, options_.blocks);
        std::transform(samples.begin(), samples.end(), samples.begin(),
                       [&](std::int64_t position) { return order(position_by_replica(position)); });
    }
    return samples;
}

/// Positions in the order in which replicas, one after the other, take them: what one replica
/// learns in a row lies contiguously then, so that it need not read the blocks of the others.
std::int64_t TrainPlan::position_by_replica(std::int64_t position) const {
    std::int64_t const replicas = options_.replicas;
    // All micro-batches before the last are full.
    auto const last =
        (steps_ - 1) * step_samples_ + (micro_batches(steps_ - 1) - 1) * micro_samples_;
    if (position < last) {
        auto const replica = position % micro_samples_ / options_.batch;
        auto const before = position / micro_samples_ * options_.batch;
        return share(learnt_, replica, replicas).first + before + position % options_.batch;
    }
    auto const rest = learnt_ - last;
    auto const in_rest = position - last;
    auto replica = in_rest * replicas / rest; // of the right one, or the one before
    if (share(rest, replica, replicas).first + share(rest, replica, replicas).count <= in_rest) {
        ++replica;
    }
    return share(learnt_, replica, replicas).first + last / replicas + in_rest -
           share(rest, replica, replicas).first;
}

Span EvaluationPlan::part(std::int64_t j) const {
    auto const first = j * batch;
    return {first, std::min(batch, samples - first)};
}

Span EvaluationPlan::batches_of(int rank, int ranks) const {
    return share(batches(), rank, ranks);
}

} // namespace lockstep::data
