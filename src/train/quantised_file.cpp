#include "train/quantised_file.hpp"

#include "base/text.hpp"
#include "checkpoint/model_file.hpp"
#include "checkpoint/weights.hpp"
#include "data/loader.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/train/load_weights.hpp"
#include "nn/quantised.hpp"
#include "train/batch_source.hpp"
#include "train/configure_torch.hpp"
#include "train/layout.hpp"
#include "train/loaded_batches.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "workload.hpp"

namespace lockstep::train {

namespace {

constexpr std::int64_t calibration_batch = 64;

/// "quantised/features.conv1.weight.scales"
std::string quantised_path(std::string const& weight, char const* part) {
    return concat("quantised/", weight, ".", part);
}

std::span<std::byte const> bytes_in(torch::Tensor const& tensor) {
    return {static_cast<std::byte const*>(tensor.const_data_ptr()), tensor.nbytes()};
}

void require_plain_input(nn::Interface const& interface) {
    auto const& inputs = interface.inputs;
    if (inputs.size() != 1 || inputs.front().whole || inputs.front().ragged) {
        throw Error(ExitCode::usage,
                    {"this model cannot be quantised",
                     "it takes several inputs, whole numbers, or samples of different lengths",
                     "Choose a model of one input of real values"});
    }
}

/// Samples spread evenly over the set, in batches.
std::vector<torch::Tensor> calibration_samples(data::Dataset const& set, std::int64_t wanted) {
    auto const all = set.samples();
    auto const count = std::min(wanted, all);
    auto const batches = (count + calibration_batch - 1) / calibration_batch;
    data::Loader loader(set,
                        [&](std::int64_t k) -> std::optional<std::vector<std::int64_t>> {
                            if (k >= batches) {
                                return std::nullopt;
                            }
                            std::vector<std::int64_t> indices;
                            for (auto i = k * calibration_batch;
                                 i < std::min((k + 1) * calibration_batch, count); ++i) {
                                indices.push_back(i * all / count);
                            }
                            return indices;
                        },
                        {});
    std::vector<torch::Tensor> samples;
    for (std::int64_t k = 0; k < batches; ++k) {
        auto const batch =
            to_tensors(loader.next(), set.inputs(), set.targets(), torch::kCPU).inputs.only();
        samples.push_back(batch.clone());
    }
    return samples;
}

/// That the graph stands for the model, whatever the batch.
void require_same_results(nn::Model& model, nn::LayerGraph const& graph,
                          std::vector<torch::Tensor> const& samples) {
    torch::NoGradGuard const no_grad;
    for (std::int64_t const count : {1, 2, 5}) {
        auto const some =
            samples.front().narrow(0, 0, std::min<std::int64_t>(count, samples.front().size(0)));
        bool same = false;
        try {
            same = torch::allclose(graph.run(some, [](auto, auto const&) { return std::nullopt; }),
                                   model.forward(nn::Fields(some)), 1e-4, 1e-5, true);
        } catch (c10::Error const&) {
            same = false; // a shape of the traced batch stands in the graph
        }
        if (!same) {
            throw Error(ExitCode::usage,
                        {"this model cannot be quantised",
                         concat("its forward depends on the batch: its trace gives other results "
                                "for ",
                                some.size(0), " samples"),
                         "Choose a model whose forward is the same for every batch"});
        }
    }
}

std::vector<nn::ByteScale> calibrated(nn::LayerGraph const& graph,
                                      std::vector<torch::Tensor> const& samples,
                                      std::string const& method) {
    std::vector<nn::Observed> observed(graph.layers());
    for (bool const counting : {false, true}) {
        for (auto const& batch : samples) {
            graph.run(batch, [&](std::size_t layer, torch::Tensor const& inputs) {
                counting ? observed[layer].count(inputs) : observed[layer].widen(inputs);
                return std::nullopt;
            });
        }
    }
    std::vector<nn::ByteScale> scales;
    std::ranges::transform(observed, std::back_inserter(scales), [&](auto const& each) {
        return each.scale(nn::calibration_named(method));
    });
    return scales;
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

/// Arrays of a file, and the memory of their values.
struct FileArrays {
    std::vector<checkpoint::NamedArray> arrays;
    std::vector<torch::Tensor> values;

    void add(std::string path, torch::Tensor const& tensor) {
        auto const kept = values.emplace_back(tensor.detach().contiguous());
        auto const type = kept.scalar_type() == torch::kChar    ? h5::Type::i8
                          : kept.scalar_type() == torch::kInt64 ? h5::Type::i64
                                                                : h5::Type::f32;
        h5::Shape shape(kept.sizes().begin(), kept.sizes().end());
        arrays.push_back(
            {std::move(path), type, shape.empty() ? h5::Shape{1} : shape, bytes_in(kept)});
    }
};

torch::Tensor read_array(checkpoint::ModelFile const& file, std::string const& path,
                         torch::Tensor const& like) {
    auto const& entry = file.entry(path);
    auto const type = like.scalar_type() == torch::kChar    ? h5::Type::i8
                      : like.scalar_type() == torch::kInt64 ? h5::Type::i64
                                                            : h5::Type::f32;
    h5::Shape const shape(like.sizes().begin(), like.sizes().end());
    bool const fits = entry.type == type &&
                      (entry.shape == shape || (shape.empty() && entry.shape == h5::Shape{1}));
    if (!fits) {
        throw Error(ExitCode::data, {concat(path, " does not fit the deck's model"),
                                     concat("it is of shape ", h5::shape_text(entry.shape),
                                            ", the model's of ", h5::shape_text(shape)),
                                     "Name the deck that this file's model was trained with"});
    }
    auto const values = torch::empty(like.sizes(), like.options());
    file.read(path, {static_cast<std::byte*>(values.mutable_data_ptr()), values.nbytes()});
    return values;
}

nn::IntegerWeights read_layer(checkpoint::ModelFile const& file, nn::WeightLayer const& layer) {
    auto const read = [&](char const* part, torch::Tensor const& like) {
        return read_array(file, quantised_path(layer.weight, part), like);
    };
    auto const scales = read("scales", layer.bias);
    auto const inputs = read("inputs", torch::empty({2}));
    nn::IntegerWeights weights{
        {read("values", torch::empty(layer.values.sizes(), torch::kChar)), scales},
        read("bias", layer.bias),
        {inputs[0].item<double>(), static_cast<std::int64_t>(inputs[1].item<double>())}};
    bool const fits = scales.gt(0).all().item<bool>() && scales.isfinite().all().item<bool>() &&
                      weights.inputs.scale > 0 && std::isfinite(weights.inputs.scale) &&
                      weights.inputs.zero >= 0 && weights.inputs.zero <= 255;
    if (!fits) {
        throw Error(ExitCode::data, {concat("the scales of ", layer.weight),
                                     "they are not positive numbers", "Quantise the model again"});
    }
    return weights;
}

} // namespace

std::string quantise_file(config::Deck const& deck, checkpoint::VerifiedFile const& file,
                          std::filesystem::path const& out, QuantiseOptions const& options) {
    auto plain = deck; // layers that only matter while training are left out
    plain.precision.gradient_checkpointing = false;
    plain.communication.sync_batch_norm = false;
    configure_torch(plain.run);
    auto const work = open_workload(plain, open_datasets(plain), [](double) {});
    auto const interface = model_interface(plain, work.samples, *work.task);
    require_plain_input(interface);
    load_weights(*work.model, file);
    work.model->eval();
    nn::LayerGraph const graph(*work.model, interface.sample_shape);
    auto const samples = calibration_samples(*work.train, options.samples);
    require_same_results(*work.model, graph, samples);
    auto const scales = calibrated(graph, samples, options.method);

    FileArrays into;
    std::int64_t quantised = 0;
    for (std::size_t i = 0; i < graph.layers(); ++i) {
        auto const layer = graph.layer(i);
        auto const weight = nn::quantised_weight(layer.values);
        into.add(quantised_path(layer.weight, "values"), weight.values);
        into.add(quantised_path(layer.weight, "scales"), weight.scales);
        into.add(quantised_path(layer.weight, "bias"), layer.bias);
        into.add(
            quantised_path(layer.weight, "inputs"),
            torch::tensor({scales[i].scale, static_cast<double>(scales[i].zero)}, torch::kFloat32));
        quantised += weight.values.numel();
    }
    for (auto const& [name, tensor] : tensors_beside(*work.model, graph)) {
        into.add(concat("model/", path_of(name)), tensor);
    }
    auto record = checkpoint::open_weights(file)->record();
    record.notes["quantised"] = concat("int8, calibrated by ", options.method);
    checkpoint::write_model(out, into.arrays, record);
    return concat(graph.layers(), " layers of ", count_text(quantised), " weights in int8, ",
                  bytes_text(std::filesystem::file_size(out)), " instead of ",
                  bytes_text(std::filesystem::file_size(file.path())));
}

bool is_quantised(checkpoint::VerifiedFile const& file) {
    return checkpoint::open_weights(file)->quantised();
}

std::shared_ptr<nn::Model> open_quantised(std::shared_ptr<nn::Model> model,
                                          nn::Interface const& interface,
                                          checkpoint::VerifiedFile const& file) {
    torch::NoGradGuard const no_grad;
    require_plain_input(interface);
    model->eval();
    auto graph = std::make_unique<nn::LayerGraph>(*model, interface.sample_shape);
    checkpoint::ModelFile const stored(file);
    std::vector<nn::IntegerWeights> weights;
    for (std::size_t i = 0; i < graph->layers(); ++i) {
        weights.push_back(read_layer(stored, graph->layer(i)));
    }
    for (auto const& [name, tensor] : tensors_beside(*model, *graph)) {
        torch::Tensor(tensor).detach().copy_(
            read_array(stored, concat("model/", path_of(name)), tensor.detach()));
    }
    return std::make_shared<nn::Quantised>(std::move(model), std::move(graph), weights);
}

} // namespace lockstep::train
