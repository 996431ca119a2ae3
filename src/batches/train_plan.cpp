#include "batches/train_plan.hpp"

#include "base/number.hpp"
#include "base/text.hpp"
#include "batches/privacy_rules.hpp"
#include "data/augment/entry.hpp"
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

/// Whether an entry slows a recording down, so that its end is lost.
bool loses_its_end(std::string_view word) {
    auto const parts = split(word, ':');
    return parts.size() > 1 && parts.front() == "speed" &&
           number_of<double>(parts[1]).value_or(1) < 1;
}

/// What to do where the targets would have a value for each place if the channels were at the other
/// end of a sample; empty: they would not.
std::string remedy_of_layout(data::FieldInfo const& input, data::FieldInfo const& target,
                             data::SampleAxes const& axes) {
    auto const dimensions = input.shape.size();
    if (input.ragged || axes.places.empty() || axes.places.size() + 1 != dimensions) {
        return {};
    }
    bool const at_front = axes.places.front() != 0;
    data::SampleAxes other;
    for (std::size_t i = 0; i + 1 < dimensions; ++i) {
        other.places.push_back(at_front ? i : i + 1);
    }
    if (!data::places_of(target.shape, input, other)) {
        return {};
    }
    auto const wanted = at_front ? "channels-last" : "channels-first";
    return concat("The targets fit samples that are stored ", wanted, ", but the ",
                  at_front ? "first" : "last", " dimension of ", h5::shape_text(input.shape),
                  " is taken for the channels: ",
                  axes.known ? concat("set model.layout = ", wanted)
                             : std::string("store the channels there"));
}

/// The target that moves with what these entries move; none where it has no places.
std::optional<data::PlaceTarget> moving_target(config::Deck const& deck, Workload const& work,
                                               data::SampleAxes const& axes) {
    auto const moving = data::moving_entries(deck.data.augment);
    auto const& samples = work.samples;
    auto const refuse = [&](std::string const& why, std::string const& next) {
        throw Error(ExitCode::usage, {concat("data.augment = ", deck.data.augment), why, next});
    };
    if (moving.empty()) {
        return std::nullopt;
    }
    auto const leave = concat("Leave out ", list_text(moving),
                              ", or import transformed copies of inputs and targets");
    for (std::size_t i = 1; i < samples.inputs.size(); ++i) {
        if (has_places(samples.inputs[i])) {
            refuse(concat(list_text(moving), " would move the first input, but not ",
                          samples.inputs[i].name),
                   leave);
        }
    }
    if (deck.task.kind == "ctc") { // the same, where a recording is shifted
        if (std::ranges::count(moving, "flip") > 0) {
            refuse("a recording that is reversed no longer says its text", "Leave out flip");
        }
        if (std::ranges::any_of(split(deck.data.augment, ','), loses_its_end)) {
            refuse("a recording that becomes longer loses its end, and no longer says its text",
                   "Write speed:1:HIGH");
        }
        return std::nullopt;
    }
    bool const classes = work.task->classes_of_places() > 0;
    if (!classes && !std::ranges::any_of(samples.targets, has_places)) {
        return std::nullopt;
    }
    auto const& target = samples.targets.front();
    auto const places = samples.targets.size() == 1 && !target.ragged
                            ? data::places_of(target.shape, samples.inputs.front(), axes)
                            : std::nullopt;
    if (!places) {
        auto const remedy =
            target.ragged ? std::string() : remedy_of_layout(samples.inputs.front(), target, axes);
        refuse(concat(list_text(moving), " would move the inputs, but not their targets, which do "
                                         "not have a value for each place of the first input"),
               remedy.empty() ? leave : remedy);
    }
    return data::PlaceTarget{samples.inputs.size(), target.shape, *places, classes || target.whole};
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

namespace {

/// Samples that are mixed must have targets of which a part makes sense.
void require_mixable(config::Deck const& deck, Workload const& work) {
    if (!data::mixes_samples(deck.data.augment)) {
        return;
    }
    auto const refuse = [&](std::string const& why, std::string const& next) {
        throw Error(ExitCode::usage, {concat("data.augment = ", deck.data.augment), why, next});
    };
    constexpr auto leave = "Leave out mixup and cutmix";
    auto const& samples = work.samples;
    bool const values = deck.task.kind == "regression" && !samples.targets.front().whole;
    if (deck.task.kind != "classification" && !values) {
        refuse(concat("mixup and cutmix mix labels of task.kind = classification or real values of "
                      "task.kind = regression, but task.kind is ",
                      deck.task.kind),
               leave);
    }
    if (samples.inputs.size() > 1) {
        refuse("only the first input would be mixed", leave);
    }
    if (deck.privacy.is_on()) {
        refuse("privacy.noise protects each sample alone, and mixed samples are not alone", leave);
    }
    if (deck.data.batch < 2) {
        refuse("a micro-batch of one sample has no other sample to mix it with",
               "Raise data.batch, or leave out mixup and cutmix");
    }
}

} // namespace

data::Augmentation augmentation_of(config::Deck const& deck, Workload const& work) {
    require_mixable(deck, work);
    auto const axes = nn::axes_of(*work.model, work.facts);
    // Before the entries are looked at: no other dimension is a remedy where none may be moved.
    auto target = moving_target(deck, work, axes);
    return {deck.data.augment,
            {.input = work.samples.inputs.front(),
             .axes = axes,
             .mean = work.train->mean(),
             .std = work.train->facts().std,
             .channels_last = work.train->facts().channels_last,
             .target = std::move(target),
             .has_labels = work.mixes_labels},
            static_cast<std::uint64_t>(deck.run.seed)};
}

std::string augmentation_remark(config::Deck const& deck, Workload const& work) {
    static_cast<void>(augmentation_of(deck, work));
    auto const& input = work.samples.inputs.front();
    auto const axes = nn::axes_of(*work.model, work.facts);
    bool const last = !axes.known && !input.ragged && !axes.places.empty() &&
                      axes.places.back() + 1 < input.shape.size();
    return last && !data::moving_entries(deck.data.augment).empty()
               ? concat("data.augment takes the last dimension of samples, which have the shape ",
                        h5::shape_text(input.shape), ", for channels, and moves none of them")
               : std::string();
}

} // namespace lockstep::train
