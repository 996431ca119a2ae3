#include "model_files/calibration.hpp"

#include "base/text.hpp"
#include "batches/loaded_batches.hpp"
#include "data/loader.hpp"
#include "device/place.hpp"
#include "lockstep/base/error.hpp"
#include "model_files/plain_deck.hpp"
#include "nn/aware_layer.hpp"
#include "nn/evaluation_mode.hpp"
#include "step/batch_source.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep::train {

namespace {

constexpr std::int64_t calibration_batch = 64;

/// "features.conv1." of "features.conv1.weight"
std::string module_of(std::string const& weight) {
    return weight.substr(0, weight.rfind('.') + 1);
}

std::optional<torch::Tensor> read_tensor(checkpoint::Weights const& weights,
                                         std::string const& name) {
    auto const* const entry = weights.find(name);
    if (entry == nullptr || entry->type != h5::Type::f32) {
        return std::nullopt;
    }
    auto const values = torch::empty(static_cast<std::int64_t>(h5::elements(entry->shape)));
    weights.read(*entry, {static_cast<std::byte*>(values.mutable_data_ptr()), values.nbytes()});
    return values;
}

} // namespace

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

std::vector<nn::ByteScale> calibrated(nn::LayerGraph const& graph,
                                      std::vector<torch::Tensor> const& samples,
                                      std::string const& method) {
    std::vector<nn::Observed> observed(graph.layers());
    for (bool const counting : {false, true}) {
        for (auto const& batch : samples) {
            torch::manual_seed(0); // both times the same random numbers, where there are any
            graph.run(batch.clone(), [&](std::size_t layer, torch::Tensor const& inputs) {
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

std::optional<std::vector<LearntScales>> learnt_scales(nn::LayerGraph const& graph,
                                                       checkpoint::Weights const& weights) {
    std::vector<LearntScales> all;
    for (std::size_t i = 0; i < graph.layers(); ++i) {
        auto const layer = graph.layer(i);
        auto const read = [&](char const* name) {
            return read_tensor(weights, concat(module_of(layer.weight), name));
        };
        auto const input = read(nn::input_log_scale);
        auto const weight = read(nn::weight_log_scale);
        auto const zero = read(nn::input_zero);
        if (i == 0 && !input) {
            return std::nullopt;
        }
        bool const fits = input && weight && zero && input->numel() == 1 && zero->numel() == 1 &&
                          weight->numel() == layer.values.size(0) &&
                          weight->exp().isfinite().all().item<bool>() &&
                          input->exp().isfinite().all().item<bool>() &&
                          zero->ge(0).logical_and(zero->le(255)).all().item<bool>();
        if (!fits) {
            throw Error(ExitCode::data,
                        {concat(weights.path().string(), " lacks valid scales for ", layer.weight),
                         "some scales are missing, not finite or out of range",
                         "Train the model again, or quantise a model that was trained without "
                         "quantise.aware"});
        }
        all.push_back({weight->exp(),
                       {static_cast<double>(input->exp().item<float>()),
                        static_cast<std::int64_t>(zero->item<float>())}});
    }
    return all;
}

std::shared_ptr<nn::Model> model_for_int8(config::Deck const& deck, Workload const& work) {
    auto const refuse = [](std::string const& what, std::string const& why,
                           std::string const& next) {
        throw Error(ExitCode::usage,
                    {concat("quantise.aware cannot be combined with ", what), why, next});
    };
    if (deck.precision.compute != "fp32") {
        refuse(concat("precision.compute = ", deck.precision.compute),
               "values that are rounded to int8 would be rounded again",
               "Set precision.compute = fp32");
    }
    auto const& inputs = work.samples.inputs;
    bool any = false;
    for (auto const& item : work.model->named_parameters()) {
        any = any || item.key().ends_with(nn::input_log_scale);
    }
    if (!any || inputs.size() != 1 || inputs.front().ragged) {
        refuse(
            concat("model.name = ", deck.model.name),
            "int8 training needs the model cnn, cnn1d, cnn3d, mlp, resnet, transformer, unet, "
            "unet3d or vit, and one input whose shape is fixed",
            "Change model.name or data.inputs, or quantise the trained model (lockstep checkpoint "
            "quantise)");
    }
    return another_model(plain_deck(deck), work);
}

void begin_scales(nn::Model& plain, config::Deck const& deck, Workload const& work) {
    torch::NoGradGuard const no_grad;
    nn::EvaluationMode const evaluation(plain);
    nn::LayerGraph const graph(plain, model_interface(deck, work.samples, *work.task));
    constexpr std::int64_t samples = 1024;
    auto const scales = calibrated(graph, calibration_samples(*work.train, samples), "mse");
    auto own = work.model->named_parameters();
    auto buffers = work.model->named_buffers();
    for (std::size_t i = 0; i < graph.layers(); ++i) {
        auto const layer = graph.layer(i);
        auto const module = module_of(layer.weight);
        auto* const input = own.find(concat(module, nn::input_log_scale));
        if (input == nullptr) {
            throw Error(
                ExitCode::usage,
                {concat("quantise.aware cannot be combined with model.name = ", deck.model.name),
                 concat("the layer with weight ", layer.weight, " cannot be trained for int8"),
                 "Quantise the trained model instead (lockstep checkpoint quantise)"});
        }
        auto const weight = plain.named_parameters()[layer.weight].detach();
        replace(*input, torch::full({1}, std::log(scales[i].scale)));
        replace(buffers[concat(module, nn::input_zero)],
                torch::full({1}, static_cast<float>(scales[i].zero)));
        replace(own[concat(module, nn::weight_log_scale)],
                nn::quantised_weight(weight).scales.log());
    }
    auto const take = [](auto const& from, auto& into) {
        for (auto const& item : from) {
            replace(into[item.key()], item.value().detach().clone());
        }
    };
    take(plain.named_parameters(), own);
    take(plain.named_buffers(), buffers);
}

} // namespace lockstep::train
