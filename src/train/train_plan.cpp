#include "train_plan.hpp"

#include "base/text.hpp"
#include "data/lengths.hpp"
#include "lockstep/base/error.hpp"

#include <memory>

#include "privacy_rules.hpp"

namespace lockstep::train {

namespace {

data::Shuffle shuffle_named(std::string const& name) {
    return name == "full"    ? data::Shuffle::full
           : name == "block" ? data::Shuffle::block
                             : data::Shuffle::none;
}

/// Rows of each sample of the set, which may be a part of what the files hold.
std::vector<std::int64_t> own_lengths(config::Deck const& deck, data::Dataset const& dataset,
                                      std::string const& input) {
    auto const all = data::ragged_lengths(deck.data.train, input);
    std::vector<std::int64_t> own(static_cast<std::size_t>(dataset.samples()));
    for (std::size_t i = 0; i < own.size(); ++i) {
        own[i] =
            all.at(static_cast<std::size_t>(dataset.number_in_files(static_cast<std::int64_t>(i))));
    }
    return own;
}

} // namespace

std::shared_ptr<data::PoissonDraw const>
poisson_draw(config::Deck const& deck, std::int64_t samples,
             std::shared_ptr<Privacy const> const& privacy) {
    return deck.privacy.is_on() ? std::make_shared<data::PoissonDraw const>(
                                      samples, private_step(deck, samples).rate,
                                      [privacy](auto step) { return privacy->draw_key(step); })
                                : nullptr;
}

data::TrainPlan train_plan(config::Deck const& deck, data::Dataset const& dataset,
                           std::shared_ptr<Privacy const> const& privacy) {
    auto const& input = dataset.inputs().front();
    bool const buckets = deck.data.bucket_by_length > 0;
    auto const weighted = dataset.weights()
                              ? data::weighted_order(dataset.weights(), deck.data.replacement)
                              : nullptr;
    return data::TrainPlan({.samples = weighted ? weighted->positions() : dataset.samples(),
                            .batch = deck.data.batch,
                            .replicas = static_cast<int>(deck.run.replicas),
                            .accumulate = static_cast<int>(deck.optimizer.accumulate),
                            .drop_last = deck.data.drop_last,
                            .shuffle = shuffle_named(deck.data.shuffle),
                            .blocks = dataset.blocks(),
                            .bucket = deck.data.bucket_by_length,
                            .lengths = buckets ? std::make_shared<std::vector<std::int64_t> const>(
                                                     own_lengths(deck, dataset, input.name))
                                               : nullptr,
                            .weighted = weighted,
                            .drawn = poisson_draw(deck, dataset.samples(), privacy),
                            .seed = static_cast<std::uint64_t>(deck.run.seed)});
}

data::Augmentation augmentation_of(config::Deck const& deck, task::Samples const& samples) {
    data::Augmentation augmentation(deck.data.augment, samples.inputs.front(),
                                    static_cast<std::uint64_t>(deck.run.seed));
    bool const places = samples.targets.front().shape.size() > 1;
    if (places && augmentation.moves_places()) {
        throw Error(
            ExitCode::usage,
            {concat("data.augment = ", deck.data.augment),
             "flip and crop would move the inputs, but not their targets",
             "Leave out flip and crop, or import transformed copies of inputs and targets"});
    }
    return augmentation;
}

} // namespace lockstep::train
