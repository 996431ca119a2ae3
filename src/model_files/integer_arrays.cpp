#include "integer_arrays.hpp"

#include "arena/layout.hpp"
#include "base/text.hpp"
#include "checkpoint/content.hpp"
#include "h5/element_type.hpp"
#include "lockstep/base/error.hpp"

#include <limits>

namespace lockstep::train {

namespace {

constexpr char const* values_path = "quantised/values";
constexpr char const* scales_path = "quantised/scales";
constexpr char const* biases_path = "quantised/biases";
constexpr char const* inputs_path = "quantised/inputs";

h5::Type type_of_array(torch::Tensor const& tensor) {
    return tensor.scalar_type() == torch::kChar    ? h5::Type::i8
           : tensor.scalar_type() == torch::kInt64 ? h5::Type::i64
                                                   : h5::Type::f32;
}

/// Whether all that the layer may sum up is finite, and so are its biases.
bool fits(nn::IntegerWeights const& layer) {
    auto const& scales = layer.weight.scales;
    auto const terms =
        static_cast<double>(layer.weight.values.numel()) / static_cast<double>(scales.numel());
    double const sum = terms * 127 * scales.max().item<double>() * 255 * layer.inputs.scale;
    return scales.gt(0).all().item<bool>() && layer.inputs.scale > 0 &&
           sum <= std::numeric_limits<float>::max() && // false for NaN, too
           layer.bias.isfinite().all().item<bool>() && layer.inputs.zero >= 0 &&
           layer.inputs.zero <= 255;
}

} // namespace

std::string layers_text(nn::LayerGraph const& graph) {
    std::string text;
    for (std::size_t i = 0; i < graph.layers(); ++i) {
        auto const layer = graph.layer(i);
        text += layer.weight;
        for (auto const extent : layer.values.sizes()) {
            text += concat(" ", extent);
        }
        text += '\n';
    }
    return text;
}

IntegerArrays::IntegerArrays(nn::LayerGraph const& graph,
                             std::vector<nn::IntegerWeights> const& layers,
                             std::vector<std::pair<std::string, torch::Tensor>> const& beside) {
    std::vector<torch::Tensor> values;
    std::vector<torch::Tensor> scales;
    std::vector<torch::Tensor> biases;
    auto const inputs = torch::empty({static_cast<std::int64_t>(graph.layers()), 2});
    for (std::size_t i = 0; i < layers.size(); ++i) {
        values.push_back(layers[i].weight.values.reshape(-1));
        scales.push_back(layers[i].weight.scales);
        biases.push_back(layers[i].bias);
        auto const own = inputs[static_cast<std::int64_t>(i)];
        own[0] = layers[i].inputs.scale;
        own[1] = layers[i].inputs.zero;
    }
    add(values_path, torch::cat(values));
    weights_ = values_.back().numel();
    add(scales_path, torch::cat(scales));
    add(biases_path, torch::cat(biases));
    add(inputs_path, inputs);
    for (auto const& [name, tensor] : beside) {
        add(concat("model/", path_of(name)), tensor);
    }
}

void IntegerArrays::add(std::string path, torch::Tensor const& tensor) {
    auto const kept = values_.emplace_back(tensor.detach().contiguous());
    h5::Shape const shape(kept.sizes().begin(), kept.sizes().end());
    arrays_.push_back({std::move(path),
                       type_of_array(kept),
                       shape.empty() ? h5::Shape{1} : shape,
                       {static_cast<std::byte const*>(kept.const_data_ptr()), kept.nbytes()}});
}

torch::Tensor read_array(checkpoint::ModelFile const& file, std::string const& path,
                         torch::Tensor const& like) {
    auto const& entry = file.entry(path);
    h5::Shape const shape(like.sizes().begin(), like.sizes().end());
    bool const fits = entry.type == type_of_array(like) &&
                      (entry.shape == shape || (shape.empty() && entry.shape == h5::Shape{1}));
    if (!fits) {
        throw Error(
            ExitCode::data,
            {concat("dataset ", path, " of the quantised model does not fit the deck's model"),
             concat("it is ", h5::name_of(entry.type), " of shape ", h5::shape_text(entry.shape),
                    ", but the deck's model needs ", h5::name_of(type_of_array(like)), " of shape ",
                    h5::shape_text(shape)),
             "Name the deck that the quantised model was trained with"});
    }
    auto const values = torch::empty(like.sizes(), like.options());
    file.read(path, {static_cast<std::byte*>(values.mutable_data_ptr()), values.nbytes()});
    return values;
}

std::vector<nn::IntegerWeights> read_integers(checkpoint::ModelFile const& file,
                                              nn::LayerGraph const& graph) {
    auto const found = file.record().notes.find(checkpoint::layers_note);
    if (found == file.record().notes.end() || found->second != layers_text(graph)) {
        throw Error(ExitCode::data,
                    {"the quantised model does not fit the deck's model",
                     "the two models have different layers (names or shapes of weights)",
                     "Name the deck that the quantised model was trained with"});
    }
    std::vector<nn::WeightLayer> layers;
    std::int64_t weights = 0;
    std::int64_t outputs = 0;
    for (std::size_t i = 0; i < graph.layers(); ++i) {
        layers.push_back(graph.layer(i));
        weights += layers.back().values.numel();
        outputs += layers.back().bias.numel();
    }
    auto const values = read_array(file, values_path, torch::empty({weights}, torch::kChar));
    auto const scales = read_array(file, scales_path, torch::empty({outputs}));
    auto const biases = read_array(file, biases_path, torch::empty({outputs}));
    auto const inputs =
        read_array(file, inputs_path, torch::empty({static_cast<std::int64_t>(layers.size()), 2}));
    std::vector<nn::IntegerWeights> read;
    std::int64_t weight = 0;
    std::int64_t output = 0;
    for (auto const& layer : layers) {
        auto const own = inputs[static_cast<std::int64_t>(read.size())];
        auto const count = layer.bias.numel();
        read.push_back(
            {{values.narrow(0, weight, layer.values.numel()).view(layer.values.sizes()).clone(),
              scales.narrow(0, output, count).clone()},
             biases.narrow(0, output, count).clone(),
             {own[0].item<double>(), static_cast<std::int64_t>(own[1].item<double>())}});
        weight += layer.values.numel();
        output += count;
        if (!fits(read.back())) {
            throw Error(
                ExitCode::data,
                {concat("the scales, biases or the zero point of ", layer.weight, " are invalid"),
                 "scales must be positive numbers, small enough for sums in float32; biases must "
                 "be finite; and the zero point must be from 0 to 255",
                 "Quantise the model again with lockstep checkpoint quantise"});
        }
    }
    return read;
}

} // namespace lockstep::train
