#include "begun_work.hpp"

#include "batches/workload_remarks.hpp"
#include "comm/agree.hpp"
#include "model_files/calibration.hpp"
#include "model_files/finite_weights.hpp"
#include "model_files/first_weights.hpp"
#include "model_files/model_changes.hpp"
#include "model_files/narrow_as_noted.hpp"
#include "model_files/smaller_model.hpp"
#include "model_files/teacher.hpp"
#include "nn/shapes.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace lockstep::train {

namespace {

std::int64_t elements_of(nn::Model const& model) {
    std::int64_t elements = 0;
    for (auto const& tensor : model.parameters()) {
        elements += tensor.numel();
    }
    return elements;
}

std::vector<std::int64_t> sample_shape_of(Workload const& work) {
    auto const& shape = work.samples.inputs.front().shape;
    return {shape.begin(), shape.end()};
}

/// Collective  over `world`
void open(comm::Communicator const& world, config::Deck const& deck, Beginning const& beginning,
          BegunWork& begun) {
    if (!beginning.found && !deck.model.weights.empty()) {
        begun.first_weights = open_first_weights(world, deck.model.weights);
    }
    auto datasets = open_datasets_together(deck, world);
    datasets.target_moments = target_moments(world, deck, datasets.train.get());
    auto& work = begun.work;
    comm::agree(world, "opening the data and the model", [&] {
        datasets.origin =
            origin_of(beginning.found, begun.first_weights, deck.model, beginning.force);
        work = open_workload(deck, std::move(datasets), beginning.check_size);
        begun.remarks = work.remarks;
        for (auto& text : workload_remarks(deck, work)) {
            begun.remarks.push_back(std::move(text));
        }
    });
    std::ranges::move(add_teacher(world, deck, beginning.ranks, beginning.device, work),
                      std::back_inserter(begun.remarks));
}

/// Collective  over `world`
void prepare_pruning(comm::Communicator const& world, config::Deck const& deck, BegunWork& begun) {
    if (deck.prune.pattern != "channels") {
        return;
    }
    comm::agree(world, "looking for channels to remove", [&] {
        auto const& work = begun.work;
        require_channels_can_go(deck, work);
        auto const& channels =
            begun.channels.emplace(deck.prune, *work.model, sample_shape_of(work));
        auto const trial = channels.one_of_each(*work.model, Layout::of(*work.model));
        require_runs(*model_without(trial, *work.model, another_model(deck, work)),
                     sample_shape_of(work));
    });
}

/// Collective  over `world`
void fill_model(comm::Communicator const& world, config::Deck const& deck,
                std::optional<checkpoint::Found> const& found, BegunWork& begun) {
    auto const& work = begun.work;
    auto const whole = elements_of(*work.model);
    std::shared_ptr<nn::Model> plain; // without the rounding of layers
    if (deck.quantise.aware) {
        comm::agree(world, "preparing for int8", [&] { plain = model_for_int8(deck, work); });
    }
    if (auto const& weights = begun.first_weights) {
        comm::agree(world, "reading model.weights",
                    [&] { begun.remarks.push_back(warning_of_model_changes(deck, *weights)); });
        auto told =
            load_first_weights(world, plain ? *plain : *work.model, *weights,
                               {.match = deck.model.weights_match,
                                .classes = work.train ? work.train->facts().class_count : 0});
        begun.remarks.push_back(std::move(told.remark));
        if (work.train) {
            begun.remarks.push_back(normalisation_remark(*weights, work.train->facts()));
        }
        begun.details = std::move(told.details);
    }
    auto const file = deck.model.own.find("file");
    if (!found && deck.model.weights.empty() && file != deck.model.own.end()) {
        comm::agree(world, "looking at the weights of model.file",
                    [&] { require_finite_weights(*work.model, file->second); });
    }
    if (plain && !found) {
        comm::agree(world, "calibrating", [&] { begin_scales(*plain, deck, work); });
    }
    if (found) {
        comm::agree(world, "reading the checkpoint",
                    [&] { narrow_as_noted(*work.model, checkpoint::reader_of(*found)->record()); });
    }
    if (elements_of(*work.model) != whole) {
        begun.shapes = nn::shapes_text(*work.model);
    }
}

} // namespace

BegunWork begin_work(comm::Communicator const& world, config::Deck const& deck,
                     Beginning const& beginning) {
    BegunWork begun;
    open(world, deck, beginning, begun);
    prepare_pruning(world, deck, begun);
    fill_model(world, deck, beginning.found, begun);
    std::erase(begun.remarks, "");
    return begun;
}

} // namespace lockstep::train
