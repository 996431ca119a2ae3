#include "check_export.hpp"

#include "base/text.hpp"
#include "deploy/run_exported.hpp"
#include "lockstep/base/error.hpp"
#include "nn/evaluation_mode.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace lockstep::app {

namespace {

constexpr std::int64_t batch = 64;

std::size_t elements_of(lower::ExportInput const& input) {
    auto const shape = input.sample();
    return static_cast<std::size_t>(
        std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>()));
}

data::Batch first_samples(data::Dataset const& set, std::int64_t samples) {
    data::Batch read;
    data::Scratch scratch;
    read.indices.resize(static_cast<std::size_t>(samples));
    std::iota(read.indices.begin(), read.indices.end(), 0);
    set.read(read, scratch);
    return read;
}

/// What `given` has of an input for so many samples, one after the other, each of as many rows.
template <class Value>
std::vector<Value> values_of(std::vector<Value> const& given, data::Values const& field,
                             lower::ExportInput const& input, std::size_t samples) {
    if (!input.info.ragged) {
        return given;
    }
    auto const each = elements_of(input);
    auto const row = each / static_cast<std::size_t>(input.rows);
    std::vector<Value> values(each * samples);
    for (std::size_t i = 0; i < samples; ++i) {
        auto const first = static_cast<std::size_t>(field.offsets[i]) * row;
        auto const own = static_cast<std::size_t>(field.offsets[i + 1]) * row - first;
        std::copy_n(given.begin() + static_cast<std::ptrdiff_t>(first), std::min(own, each),
                    values.begin() + static_cast<std::ptrdiff_t>(i * each));
    }
    return values;
}

template <class Value>
std::vector<std::byte> bytes_from(std::vector<Value> const& values) {
    auto const bytes = std::as_bytes(std::span(values));
    return {bytes.begin(), bytes.end()};
}

/// The bytes of an input's samples, which `set` does not scale, as the exported file takes them.
std::vector<std::byte> raw_input(data::Dataset const& set, data::Batch const& read, std::size_t at,
                                 lower::ExportInput const& input) {
    auto const& field = read.fields[at];
    auto const samples = read.indices.size();
    if (input.info.whole) {
        return bytes_from(values_of(field.wholes, field, input, samples));
    }
    if (input.element() == deploy::Element::f64) {
        return bytes_from(values_of(set.read_stored(at, read.indices), field, input, samples));
    }
    auto const values = values_of(field.reals, field, input, samples);
    if (input.element() != deploy::Element::u8) {
        return bytes_from(values);
    }
    std::vector<std::uint8_t> bytes;
    for (float const value : values) {
        bytes.push_back(static_cast<std::uint8_t>(std::lround(value * 255)));
    }
    return bytes_from(bytes);
}

/// How a file is run on so many samples, whose values `bytes` gives by the number of the input.
template <class Bytes>
deploy::RunInputs run_inputs(std::vector<lower::ExportInput> const& inputs, std::size_t samples,
                             int times, Bytes bytes) {
    deploy::RunInputs made{{}, samples, times};
    auto const names = lower::input_names(inputs);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        made.inputs.push_back({names[i], inputs[i].element(), bytes(i)});
    }
    return made;
}

torch::Tensor our_input(data::Values const& field, lower::ExportInput const& input,
                        std::int64_t samples) {
    auto shape = input.sample();
    shape.insert(shape.begin(), samples);
    auto const count = static_cast<std::size_t>(samples);
    if (input.info.whole) {
        auto values = values_of(field.wholes, field, input, count);
        return torch::from_blob(values.data(), shape, torch::kInt64).clone();
    }
    auto values = values_of(field.reals, field, input, count);
    return torch::from_blob(values.data(), shape).clone();
}

/// As the file returns them.
torch::Tensor in_own_units(torch::Tensor const& outputs, data::Facts const& facts) {
    if (facts.target_mean.empty()) {
        return outputs;
    }
    auto const tensor = [](std::vector<double> const& values) {
        return torch::tensor(values, torch::kFloat64);
    };
    auto const rows = outputs.to(torch::kFloat64).reshape({outputs.size(0), -1});
    return (rows * tensor(facts.target_std) + tensor(facts.target_mean))
        .to(torch::kFloat32)
        .reshape(outputs.sizes());
}

torch::Tensor our_outputs(train::SavedModel const& saved, data::Dataset const& set,
                          std::int64_t samples) {
    torch::NoGradGuard const no_grad;
    nn::EvaluationMode const evaluation(*saved.model);
    auto const read = first_samples(set, samples);
    std::vector<torch::Tensor> inputs;
    for (std::size_t i = 0; i < saved.inputs.size(); ++i) {
        inputs.push_back(our_input(read.fields[i], saved.inputs[i], samples));
    }
    std::vector<torch::Tensor> parts;
    for (std::int64_t first = 0; first < samples; first += batch) {
        std::vector<nn::Field> fields;
        for (auto const& input : inputs) {
            fields.push_back({input.slice(0, first, first + batch), {}});
        }
        evaluation.begin(0);
        auto const outputs = saved.model->forward(nn::Fields(std::move(fields)));
        parts.push_back(outputs.to(torch::kFloat32));
    }
    return in_own_units(torch::cat(parts), saved.facts).contiguous();
}

} // namespace

ExportDifference compare_export(std::filesystem::path const& file, train::SavedModel const& saved,
                                config::Data const& data, std::int64_t samples) {
    ExportDifference found;
    std::vector<std::string> same;
    auto const scaled = train::samples_for(saved, data, data.test, found.remarks);
    auto const unscaled = train::samples_for(saved, data, data.test, same);
    unscaled->scale_as({}, {}, false);
    found.samples = std::min(samples, scaled->samples());
    auto const ours = our_outputs(saved, *scaled, found.samples);
    auto const raw = first_samples(*unscaled, found.samples);
    auto const count = static_cast<std::size_t>(found.samples);
    auto const run =
        deploy::run_exported(file, run_inputs(saved.inputs, count, 3, [&](std::size_t i) {
                                 return raw_input(*unscaled, raw, i, saved.inputs[i]);
                             }));
    if (static_cast<std::int64_t>(run.outputs.size()) != ours.numel()) {
        throw Error(ExitCode::data,
                    {concat(file.string(), " does not match the model"),
                     concat("for the same samples, the file returns ",
                            amount_of(run.outputs.size(), "number"), " and the model returns ",
                            ours.numel()),
                     "Export the model again, or name with --checkpoint the checkpoint from which "
                     "the file was exported"});
    }
    auto const theirs = torch::from_blob(const_cast<float*>(run.outputs.data()), ours.sizes());
    auto const differences = (theirs - ours).abs();
    found.largest = differences.max().item().toDouble();
    found.largest_relative = (differences / (ours.abs() + 1)).max().item().toDouble();
    found.step = (ours.max() - ours.min()).item().toDouble() / 255;
    if (ours.dim() > 1) {
        auto const other = theirs.argmax(1).ne(ours.argmax(1));
        found.predictions = other.numel();
        found.other_predictions = other.sum().item().toLong();
    }
    found.seconds_per_sample = run.seconds_per_sample;
    return found;
}

double export_latency(std::filesystem::path const& file,
                      std::vector<lower::ExportInput> const& inputs) {
    auto const zeros = run_inputs(inputs, 1, 20, [&](std::size_t i) {
        return std::vector<std::byte>(elements_of(inputs[i]) *
                                      deploy::bytes_of(inputs[i].element()));
    });
    return deploy::run_exported(file, zeros).seconds_per_sample;
}

} // namespace lockstep::app
