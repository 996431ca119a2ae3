#include "batches/train_plan.hpp"

#include "base/text.hpp"
#include "batches/privacy_rules.hpp"
#include "data/lengths.hpp"
#include "h5/element_type.hpp"
#include "lockstep/base/error.hpp"
#include "nn/axis_reader.hpp"

#include <algorithm>
#include <memory>

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

bool has_places(data::FieldInfo const& field) {
    return field.ragged || field.shape.size() > 1;
}

/// What flip and crop move belongs together, and stays what its target says.
void require_movable(config::Deck const& deck, Workload const& work) {
    auto const words = split(deck.data.augment, ',');
    auto const has = [&](std::string_view name) {
        return std::ranges::any_of(
            words, [&](std::string_view word) { return word.substr(0, word.find(':')) == name; });
    };
    auto const refuse = [&](std::string const& why, std::string const& next) {
        throw Error(ExitCode::usage, {concat("data.augment = ", deck.data.augment), why, next});
    };
    constexpr char const* leave =
        "Leave out flip and crop, or import transformed copies of inputs and targets";
    if (!has("flip") && !has("crop")) {
        return;
    }
    auto const& samples = work.samples;
    for (std::size_t i = 1; i < samples.inputs.size(); ++i) {
        if (has_places(samples.inputs[i])) {
            refuse(concat("flip and crop would move the first input, but not ",
                          samples.inputs[i].name),
                   leave);
        }
    }
    bool const is_said = deck.task.kind == "ctc"; // the same, where a recording is shifted
    if (is_said && has("flip")) {
        refuse("a recording that is reversed no longer says its text", "Leave out flip");
    }
    if (!is_said &&
        (work.task->classes_of_places() > 0 || std::ranges::any_of(samples.targets, has_places))) {
        refuse("flip and crop would move the inputs, but not their targets", leave);
    }
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

data::Augmentation augmentation_of(config::Deck const& deck, Workload const& work) {
    // Before the entries are looked at: no other dimension is a remedy where none may be moved.
    require_movable(deck, work);
    return {deck.data.augment, work.samples.inputs.front(), nn::axes_of(*work.model, work.facts),
            static_cast<std::uint64_t>(deck.run.seed)};
}

std::string augmentation_remark(config::Deck const& deck, Workload const& work) {
    auto const& input = work.samples.inputs.front();
    auto const axes = nn::axes_of(*work.model, work.facts);
    bool const last = !axes.known && !input.ragged && !axes.places.empty() &&
                      axes.places.back() + 1 < input.shape.size();
    return last && augmentation_of(deck, work).moves_places()
               ? concat("data.augment takes the last dimension of samples, which have the shape ",
                        h5::shape_text(input.shape), ", for channels, and moves none of them")
               : std::string();
}

} // namespace lockstep::train
