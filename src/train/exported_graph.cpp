#include "train/exported_graph.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/train/load_weights.hpp"

#include <nlohmann/json.hpp>

#include "workload.hpp"

namespace lockstep::train {

namespace {

/// Without what only matters in training, and with forms that have operators of their own.
config::Deck plain_deck(config::Deck deck) {
    deck.precision.gradient_checkpointing = false;
    deck.communication.sync_batch_norm = false;
    if (deck.model.name == "lmu-asr") {
        deck.model.own["form"] = "recurrent"; // instead of Fourier transforms
    }
    return deck;
}

nn::ExportInputs inputs_of(Workload const& work, std::int64_t rows) {
    auto const& inputs = work.samples.inputs;
    if (inputs.size() != 1) {
        throw Error(ExitCode::usage, {"this model cannot be exported: it takes several inputs",
                                      "exported models take one",
                                      "Export --format safetensors and load the weights by name"});
    }
    if (inputs.front().ragged != (rows > 0)) {
        throw Error(ExitCode::usage,
                    inputs.front().ragged
                        ? ErrorText{"--rows is not set",
                                    "samples of this model have a number of rows each, and an "
                                    "exported model takes samples of one size",
                                    "Add --rows N"}
                        : ErrorText{concat("--rows ", rows),
                                    "samples of this model all have one size", "Leave it out"});
    }
    nn::ExportInputs found{inputs.front(), rows, {}, {}};
    if (work.train) {
        found.mean = work.train->mean();
        found.std = work.train->std();
    }
    return found;
}

} // namespace

SavedModel open_saved_model(config::Deck const& deck, checkpoint::VerifiedFile const& file,
                            std::int64_t rows) {
    auto const plain = plain_deck(deck);
    auto work = open_workload(plain, open_datasets(plain), [](double) {});
    auto inputs = inputs_of(work, rows);
    load_weights(*work.model, file);
    return {work.model, std::move(inputs), work.samples.class_names};
}

deploy::Graph graph_of(SavedModel const& saved) {
    auto graph = nn::export_graph(*saved.model, saved.inputs);
    deploy::simplify(graph);
    graph.class_names = saved.class_names;
    if (!saved.class_names.empty()) {
        graph.facts["classes"] =
            nlohmann::json(saved.class_names)
                .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    }
    return graph;
}

} // namespace lockstep::train
