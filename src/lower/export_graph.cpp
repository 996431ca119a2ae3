#include "lower/export_graph.hpp"

#include "base/text.hpp"
#include "data/convert.hpp"
#include "lockstep/base/error.hpp"
#include "nn/evaluation_mode.hpp"
#include "nn/integer_operator.hpp"

#include <algorithm>
#include <array>

#include "lowered_call.hpp"

namespace lockstep::lower {

namespace {

Lowerings all_lowerings() {
    auto table = lower_arithmetic();
    for (auto part :
         {lower_activations(), lower_products(), lower_windows(), lower_resampling(),
          lower_indexing(), lower_norms(), lower_shapes(), lower_sequences(), lower_integers()}) {
        table.merge(part);
    }
    return table;
}

std::set<std::string> names_in(Lowerings const& table) {
    std::set<std::string> names;
    for (auto const& [name, lowering] : table) {
        names.insert(name);
    }
    return names;
}

std::vector<torch::Tensor> trial(std::vector<ExportInput> const& inputs, std::int64_t samples) {
    std::vector<torch::Tensor> zeros;
    for (auto const& input : inputs) {
        auto shape = input.sample();
        shape.insert(shape.begin(), samples);
        zeros.push_back(torch::zeros(shape, input.info.whole ? torch::kInt64 : torch::kFloat32));
    }
    return zeros;
}

nn::Fields fields_of(std::vector<torch::Tensor> const& given) {
    std::vector<nn::Field> fields;
    for (auto const& values : given) {
        fields.push_back({values, {}});
    }
    return nn::Fields(std::move(fields));
}

deploy::TensorId graph_input(deploy::Graph& graph, std::string const& name,
                             ExportInput const& input) {
    auto shape = deploy::fixed_shape(input.sample());
    shape.insert(shape.begin(), deploy::Extent{1, true});
    return graph.input(name, input.element(), shape);
}

/// An input of the graph, scaled as data::Normaliser does it.
deploy::TensorId scaled(deploy::Graph& graph, deploy::TensorId found, ExportInput const& input) {
    GraphParts parts(graph);
    if (input.element() == deploy::Element::u8) {
        found = parts.binary("Div", parts.cast(found, deploy::Element::f32), graph.real(255));
    }
    bool const wide = input.element() == deploy::Element::f64;
    if (input.info.whole || input.mean.empty()) {
        return wide ? parts.cast(found, deploy::Element::f32) : found;
    }
    std::vector<std::int64_t> extents;
    if (input.mean.size() > 1) { // one for each channel
        extents.assign(input.sample().size(), 1);
        extents[data::axis_of_channels(input.mean.size(), input.info.shape, input.channels_last) +
                (input.info.ragged ? 1 : 0)] = static_cast<std::int64_t>(input.mean.size());
    }
    if (wide) {
        auto const mean = graph.doubles(input.mean, extents);
        auto const std = graph.doubles(input.std, extents);
        return graph.add("Normalize", {found, mean, std},
                         {deploy::Element::f32, graph[found].shape});
    }
    auto const constant = [&](std::vector<double> const& values) {
        return graph.reals({values.begin(), values.end()}, extents);
    };
    found = parts.binary("Sub", found, constant(input.mean));
    return parts.binary("Div", found, constant(input.std));
}

/// Normalised outputs in the units of the targets.
deploy::TensorId in_own_units(deploy::Graph& graph, deploy::TensorId found,
                              ExportUnits const& units) {
    if (units.mean.empty()) {
        return found;
    }
    GraphParts parts(graph);
    std::vector<std::int64_t> extents;
    if (units.mean.size() > 1) { // one for each value of a sample
        extents = deploy::extents_of(graph[found].shape);
        extents.erase(extents.begin());
    }
    auto const constant = [&](std::vector<double> const& values) {
        return graph.reals({values.begin(), values.end()}, extents);
    };
    found = parts.binary("Mul", found, constant(units.std));
    return parts.binary("Add", found, constant(units.mean));
}

/// Where an operator stands: after the last parameter that was used before it.
std::string place_of(nn::Recording const& recording, std::size_t at, ValueTable const& table) {
    for (auto before = at + 1; before-- > 0;) {
        for (auto const& argument : recording.calls[before].arguments) {
            if (!argument.isTensor()) {
                continue;
            }
            auto const found = table.names.find(argument.toTensor().unsafeGetTensorImpl());
            if (found != table.names.end()) {
                return concat(before == at ? "with " : "after ", found->second);
            }
        }
    }
    return "before the first parameter";
}

void lower_all(deploy::Graph& graph, ValueTable& table,
               std::array<nn::Recording, 2> const& recordings, Lowerings const& lowerings) {
    auto const& [two, three] = recordings;
    for (std::size_t at = 0; at < two.calls.size(); ++at) {
        auto const& call = two.calls[at];
        auto const place = concat("operator ", call.schema->name(), " (number ", at + 1,
                                  " of the model, ", place_of(two, at, table), ")", call.place);
        auto const found = lowerings.find(call.name);
        if (found == lowerings.end()) {
            nn::refuse_export(concat(place, " is not supported in exports to ONNX and C"));
        }
        try {
            LoweredCall lowered(graph, table, call, three.calls[at]);
            found->second(lowered);
        } catch (Error const& error) {
            throw Error(error.code(), {concat(place, " cannot be exported"), error.text().why,
                                       error.text().next});
        } catch (std::exception const& error) { // arguments of another form than usual
            nn::refuse_export(concat(place, " has arguments of an unusual form (",
                                     split(error.what(), '\n').front(), ")"));
        }
    }
}

} // namespace

std::vector<std::int64_t> ExportInput::sample() const {
    std::vector<std::int64_t> shape(info.shape.begin(), info.shape.end());
    if (info.ragged) {
        shape.insert(shape.begin(), rows);
    }
    return shape;
}

deploy::Element ExportInput::element() const {
    return info.whole                           ? deploy::Element::i64
           : info.type == h5::Type::u8          ? deploy::Element::u8
           : !data::is_held_by_float(info.type) ? deploy::Element::f64
                                                : deploy::Element::f32;
}

std::vector<std::string> input_names(std::vector<ExportInput> const& inputs) {
    if (inputs.size() == 1) {
        return {"inputs"};
    }
    std::vector<std::string> names;
    for (auto const& input : inputs) {
        auto name = input.info.name;
        name.erase(0, name.find_first_not_of('/')); // "/x" is x in HDF5, and of our own names here
        names.push_back(untaken_name(name, [&](std::string const& each) {
            return each == "outputs" || std::ranges::count(names, each) > 0;
        }));
    }
    return names;
}

namespace {

/// Values that differ from sample to sample, but for whole numbers, whose range is not known.
std::vector<torch::Tensor> varied(std::vector<ExportInput> const& inputs, std::int64_t samples) {
    auto values = trial(inputs, samples);
    for (auto& each : values) {
        if (each.is_floating_point()) {
            each = torch::arange(each.numel(), torch::kFloat64)
                       .sin()
                       .to(each.scalar_type())
                       .view(each.sizes());
        }
    }
    return values;
}

/// A graph takes batches of any size: the samples of a larger batch, and one alone, must give what
/// they give in the batches that were recorded. Only large differences count, since kernels round
/// in other ways for other batch sizes.
void require_independent(nn::Model& model, std::vector<ExportInput> const& inputs) {
    constexpr std::int64_t many = 9;
    constexpr double tolerance = 0.02;
    auto const all = varied(inputs, many);
    auto const outputs_of = [&](std::int64_t count) {
        std::vector<torch::Tensor> part;
        for (auto const& each : all) {
            part.push_back(each.narrow(0, 0, count).clone()); // which the model may change
        }
        return model.forward(fields_of(part)).to(torch::kFloat64);
    };
    auto const wanted = outputs_of(2);
    auto const require = [&](std::int64_t count) {
        auto const refuse = [&](std::string const& why) {
            nn::refuse_export(
                concat("its forward method ", why, " a batch of ", amount_of(count, "sample")),
                "a single graph must represent all batch sizes");
        };
        torch::Tensor found;
        try {
            found = outputs_of(count);
        } catch (std::exception const&) {
            refuse("fails for");
        }
        if (wanted.dim() == 0 || found.dim() != wanted.dim() ||
            found.size(0) * 2 != wanted.size(0) * count ||
            found.numel() * 2 != wanted.numel() * count) {
            refuse("returns an output whose shape does not scale with the batch size, for example "
                   "for");
        }
        auto const shared = std::min(found.size(0), wanted.size(0));
        auto const scale = wanted.nan_to_num(0, 0, 0).abs().max().item<double>();
        if (!torch::allclose(found.narrow(0, 0, shared), wanted.narrow(0, 0, shared), 0,
                             tolerance * scale, /*equal_nan=*/true)) {
            refuse("computes something else for the same samples in");
        }
    };
    require(1);
    require(many);
}

} // namespace

deploy::Graph export_graph(nn::Model& model, std::vector<ExportInput> const& inputs,
                           ExportUnits const& units) {
    torch::NoGradGuard const no_grad;
    nn::EvaluationMode const evaluation(model);
    nn::IntegerOperator const integers;
    auto const lowerings = all_lowerings();
    auto const known = names_in(lowerings);
    std::array<nn::Recording, 2> recordings;
    for (std::size_t i = 0; i < recordings.size(); ++i) {
        recordings[i] =
            nn::record_calls([&](auto const& given) { return model.forward(fields_of(given)); },
                             trial(inputs, LoweredCall::batches[i]), known);
        nn::refuse_packed(recordings[i]);
    }
    auto const alike = [](nn::RecordedCall const& a, nn::RecordedCall const& b) {
        return a.name == b.name && a.values == b.values && a.results.size() == b.results.size();
    };
    if (!std::equal(recordings[0].calls.begin(), recordings[0].calls.end(),
                    recordings[1].calls.begin(), recordings[1].calls.end(), alike) ||
        recordings[0].output != recordings[1].output) {
        nn::refuse_export("its forward method calls different operators for different batch sizes",
                          "a single graph cannot represent this");
    }
    deploy::Graph graph;
    ValueTable table;
    auto const names = input_names(inputs);
    for (std::size_t i = 0; i < inputs.size(); ++i) { // first of all, so that they keep their names
        table.values.push_back(graph_input(graph, names[i], inputs[i]));
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        table.values[i] = scaled(graph, table.values[i], inputs[i]);
    }
    for (auto const& item : model.named_parameters()) {
        table.names[item.value().unsafeGetTensorImpl()] = item.key();
    }
    lower_all(graph, table, recordings, lowerings);
    graph.set_output(in_own_units(graph, table.values.at(recordings[0].output), units));
    require_independent(model, inputs);
    return graph;
}

} // namespace lockstep::lower
