#include "train/saved_model.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/train/load_weights.hpp"
#include "nn/export_script.hpp"
#include "train/quantised_file.hpp"
#include "train/workload.hpp"

#include <algorithm>

#include "plain_deck.hpp"

namespace lockstep::train {

void export_script(config::Deck const& deck, checkpoint::VerifiedFile const& file,
                   std::filesystem::path const& out) {
    auto const plain = plain_deck(deck);
    auto const work = open_workload(plain, open_datasets(plain), [](double) {});
    load_weights(*work.model, file);
    nn::export_script(*work.model, model_interface(plain, work.samples, *work.task), out);
}

namespace {

/// Without what only matters in training, and with forms that have operators of their own.
config::Deck evaluation_deck(config::Deck deck) {
    deck = plain_deck(std::move(deck));
    if (deck.model.name == "lmu-asr") {
        deck.model.own["form"] = "recurrent"; // instead of Fourier transforms
    }
    return deck;
}

std::vector<nn::ExportInput> inputs_of(Workload const& work, std::int64_t rows) {
    auto const& inputs = work.samples.inputs;
    bool const ragged = std::ranges::any_of(inputs, &data::FieldInfo::ragged);
    if (inputs.size() > 1 && ragged) {
        throw Error(ExitCode::usage, {"this model cannot be exported",
                                      "the model takes several inputs, and some of them have a "
                                      "different number of rows for each sample",
                                      "Use --format safetensors and load the weights by name"});
    }
    if (ragged != (rows > 0)) {
        throw Error(
            ExitCode::usage,
            ragged ? ErrorText{"--rows is not set",
                               "the samples of this model have different numbers of rows, but an "
                               "exported model takes samples with a fixed number of rows",
                               "Add --rows N with the number of rows of a sample"}
                   : ErrorText{concat("--rows ", rows),
                               "all samples of this model have the same size", "Leave out --rows"});
    }
    std::vector<nn::ExportInput> found;
    for (auto const& info : inputs) {
        found.push_back({info, rows});
    }
    if (work.train) {
        found.front().mean = work.train->mean();
        found.front().std = work.train->std();
    }
    return found;
}

/// In what a set's inputs are others than a model's; empty: in nothing that matters.
std::string difference_of(std::vector<data::FieldInfo> const& inputs,
                          std::vector<nn::ExportInput> const& own) {
    if (inputs.size() != own.size()) {
        return "number";
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        auto const& info = own[i].info;
        if (inputs[i].type != info.type) {
            return "type";
        }
        if (inputs[i].shape != info.shape) {
            return "shape";
        }
        if (inputs[i].ragged != info.ragged) {
            return "whether all samples have the same length";
        }
    }
    return {};
}

} // namespace

SavedModel open_saved_model(config::Deck const& deck, checkpoint::VerifiedFile const& file,
                            std::int64_t rows) {
    auto const plain = evaluation_deck(deck);
    auto work = open_workload(plain, open_datasets(plain), [](double) {});
    auto inputs = inputs_of(work, rows);
    if (is_quantised(file)) {
        auto const interface = model_interface(plain, work.samples, *work.task);
        return {open_quantised(work.model, interface, file), std::move(inputs),
                work.samples.class_names, true};
    }
    load_weights(*work.model, file);
    return {work.model, std::move(inputs), work.samples.class_names};
}

std::unique_ptr<data::Dataset> samples_for(SavedModel const& saved, config::Data const& data,
                                           std::string const& files) {
    auto set = open_dataset(data, files);
    if (auto const differs = difference_of(set->inputs(), saved.inputs); !differs.empty()) {
        throw Error(
            ExitCode::usage,
            {concat("--data ", files),
             concat(
                 "the inputs in this set and the inputs that the model was trained on differ in ",
                 differs),
             "Name a set that was imported in the same way as the model's training set"});
    }
    set->scale_as(saved.inputs.front().mean, saved.inputs.front().std);
    return set;
}

} // namespace lockstep::train
