#include "model_files/quantised_file.hpp"

#include "arena/layout.hpp"
#include "base/text.hpp"
#include "batches/model_facts.hpp"
#include "checkpoint/content.hpp"
#include "checkpoint/model_file.hpp"
#include "checkpoint/weights.hpp"
#include "device/configure_torch.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/model_files/load_weights.hpp"
#include "model_files/calibration.hpp"
#include "model_files/finite_weights.hpp"
#include "model_files/narrow_as_noted.hpp"
#include "model_files/plain_deck.hpp"
#include "model_files/saved_model.hpp"
#include "model_files/stored_deck.hpp"
#include "nn/quantised.hpp"
#include "nn/traced.hpp"

#include <algorithm>
#include <set>

#include "integer_arrays.hpp"

namespace lockstep::train {

namespace {

void require_plain_input(nn::Interface const& interface) {
    auto const& inputs = interface.inputs;
    if (inputs.size() != 1 || inputs.front().ragged) {
        throw Error(ExitCode::usage, {"this model cannot be quantised",
                                      inputs.size() != 1 ? "it takes several inputs"
                                                         : "its samples have different lengths",
                                      "Choose a model with one input whose shape is fixed"});
    }
}

/// The ranges of layers' inputs are computed without noise.
void require_public_samples(config::Deck const& deck, checkpoint::VerifiedFile const& file) {
    auto const before = stored_deck(checkpoint::open_weights(file)->record(), file.path());
    bool const same = deck.data.train.empty() || deck.data.train == before.data.train;
    if (before.privacy.is_on() && same) {
        throw Error(ExitCode::usage,
                    {concat(file.path().string(), " cannot be calibrated on data.train"),
                     "it was trained with privacy.noise, and the ranges of its layers' inputs "
                     "would reveal single samples",
                     "Name samples that the model was not trained on, such as public data, with "
                     "--data.train FILE"});
    }
}

/// Refuses a file whose facts are not those of its model, which has an output for each class.
void require_known_classes(Workload const& work, checkpoint::VerifiedFile const& file) {
    auto const classes = std::ssize(work.samples.class_names);
    auto const known = facts_of(file).class_count;
    if (known > 0 && known != classes && work.task->outputs() == classes) {
        throw Error(ExitCode::data,
                    {concat(file.path().string(), " contradicts itself"),
                     concat("its model has ", amount_of(work.task->outputs(), "output"),
                            ", but the file says that it knows ", known, " classes"),
                     "Copy the file again from its source, or name another"});
    }
}

/// That the graph stands for the model, whatever the batch.
void require_same_results(nn::Model& model, nn::LayerGraph const& graph,
                          std::vector<torch::Tensor> const& samples) {
    torch::NoGradGuard const no_grad;
    auto const count = nn::differing_batch(
        model,
        [&](torch::Tensor const& inputs) {
            return graph.run(inputs, [](auto, auto const&) { return std::nullopt; });
        },
        [&](std::int64_t wanted) {
            return samples.front().narrow(0, 0, std::min(wanted, samples.front().size(0)));
        });
    if (count) {
        throw Error(ExitCode::usage,
                    {"this model cannot be quantised",
                     concat("for a batch of ", amount_of(*count, "sample"),
                            ", the model and its trace give different results, because the trace "
                            "keeps the batch size that it was made with"),
                     "Let the forward method take no number from the batch size: write flatten(1), "
                     "not view(x.size(0), -1)"});
    }
}

/// A model's tensors that are not in quantised layers, by name.
std::vector<std::pair<std::string, torch::Tensor>> tensors_beside(nn::Model const& model,
                                                                  nn::LayerGraph const& graph) {
    std::set<std::string> const absorbed(graph.absorbed().begin(), graph.absorbed().end());
    std::vector<std::pair<std::string, torch::Tensor>> tensors;
    auto const add = [&](auto const& items) {
        for (auto const& item : items) {
            if (!absorbed.contains(item.key())) {
                tensors.emplace_back(item.key(), item.value());
            }
        }
    };
    add(model.named_parameters());
    add(model.named_buffers());
    return tensors;
}

/// "; in float32: embedding.weight": the weights that are in no quantised layer.
std::string rest_text(std::vector<std::pair<std::string, torch::Tensor>> const& beside) {
    std::vector<std::string> names;
    for (auto const& [name, tensor] : beside) {
        if (tensor.requires_grad() && tensor.dim() > 1) {
            names.push_back(name);
        }
    }
    return names.empty() ? "" : concat("; in float32: ", joined(names, ", "));
}

} // namespace

QuantisedFile quantise_file(config::Deck const& deck, checkpoint::VerifiedFile const& file,
                            std::filesystem::path const& out, QuantiseOptions const& options) {
    if (task::is_played(deck.task)) {
        throw Error(ExitCode::usage,
                    {"this model cannot be quantised",
                     concat("with task.kind = ", deck.task.kind,
                            ", there is no training set to calibrate its layers on"),
                     "Choose a model that learns from a data set"});
    }
    require_public_samples(deck, file);
    auto const plain = plain_deck(deck);
    configure_torch(plain.run);
    auto const work = open_by_data(plain, file);
    auto const interface = model_interface(plain, work.samples, *work.task);
    require_plain_input(interface);
    load_weights(*work.model, file);
    require_known_classes(work, file);
    work.model->eval();
    nn::LayerGraph const graph(*work.model, interface);
    auto const samples = calibration_samples(*work.train, options.samples);
    require_same_results(*work.model, graph, samples);
    auto const learnt = learnt_scales(graph, *checkpoint::open_weights(file));
    auto const how =
        learnt ? std::string("with learnt scales") : concat("calibrated by ", options.method);

    std::vector<nn::IntegerWeights> layers;
    auto const scales =
        learnt ? std::vector<nn::ByteScale>{} : calibrated(graph, samples, options.method);
    for (std::size_t i = 0; i < graph.layers(); ++i) {
        auto const layer = graph.layer(i);
        layers.push_back(
            learnt ? nn::IntegerWeights{nn::quantised_weight(layer.values, (*learnt)[i].weight *
                                                                               layer.factor.abs()),
                                        layer.bias, (*learnt)[i].inputs}
                   : nn::IntegerWeights{nn::quantised_weight(layer.values), layer.bias, scales[i]});
        auto& [weight, bias, inputs] = layers.back();
        bias = nn::quantised_bias(bias, weight.scales * inputs.scale);
    }
    auto const beside = tensors_beside(*work.model, graph);
    IntegerArrays const into(graph, layers, beside);
    auto record = checkpoint::open_weights(file)->record();
    record.history
        .clear(); // what tells of the training: the file that this one was made from has it
    record.notes.erase("data");
    record.notes[checkpoint::quantised_note] = concat("int8, ", how);
    record.notes[checkpoint::layers_note] = layers_text(graph);
    checkpoint::write_model(out, into.arrays(), record, checkpoint::Alignment::none);
    return {concat(amount_of(graph.layers(), "layer"), " with ", count_text(into.weights()),
                   " weights in int8, ", how, ", ", bytes_text(std::filesystem::file_size(out)),
                   " instead of ", bytes_text(std::filesystem::file_size(file.path())),
                   rest_text(beside)),
            work.remarks};
}

bool is_quantised(checkpoint::VerifiedFile const& file) {
    return checkpoint::open_weights(file)->quantised();
}

std::shared_ptr<nn::Model> open_quantised(std::shared_ptr<nn::Model> model,
                                          nn::Interface const& interface,
                                          checkpoint::VerifiedFile const& file) {
    torch::NoGradGuard const no_grad;
    require_plain_input(interface);
    checkpoint::ModelFile const stored(file);
    narrow_as_noted(*model, stored.record());
    model->eval();
    auto graph = std::make_unique<nn::LayerGraph>(*model, interface);
    auto const weights = read_integers(stored, *graph);
    for (auto const& [name, tensor] : tensors_beside(*model, *graph)) {
        torch::Tensor(tensor).detach().copy_(
            read_array(stored, concat("model/", path_of(name)), tensor.detach()));
    }
    require_finite_weights(*model, file.path());
    return std::make_shared<nn::Quantised>(std::move(model), std::move(graph), weights);
}

} // namespace lockstep::train
