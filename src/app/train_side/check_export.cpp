#include "check_export.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "nn/evaluation_mode.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "deploy/run_exported.hpp"

namespace lockstep::app {

namespace {

constexpr std::int64_t batch = 64;

std::size_t elements_of(nn::ExportInputs const& inputs) {
    auto const shape = inputs.sample();
    return static_cast<std::size_t>(
        std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>()));
}

/// Values of so many samples, one after the other.
template <class Value>
std::vector<Value> values_of(data::Dataset const& set, nn::ExportInputs const& inputs,
                             std::int64_t samples) {
    data::Batch read;
    data::Scratch scratch;
    read.indices.resize(static_cast<std::size_t>(samples));
    std::iota(read.indices.begin(), read.indices.end(), 0);
    set.read(read, scratch);
    auto const& field = read.fields.front();
    auto const& given = [&]() -> std::vector<Value> const& {
        if constexpr (std::is_same_v<Value, float>) {
            return field.reals;
        } else {
            return field.wholes;
        }
    }();
    if (!inputs.info.ragged) {
        return given;
    }
    auto const each = elements_of(inputs);
    auto const row = each / static_cast<std::size_t>(inputs.rows);
    std::vector<Value> values(each * static_cast<std::size_t>(samples));
    for (std::size_t i = 0; i < static_cast<std::size_t>(samples); ++i) {
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

/// Of samples as the exported file takes them.
std::vector<std::byte> raw_inputs(data::Dataset const& unscaled, nn::ExportInputs const& inputs,
                                  std::int64_t samples) {
    if (inputs.info.whole) {
        return bytes_from(values_of<std::int64_t>(unscaled, inputs, samples));
    }
    auto const values = values_of<float>(unscaled, inputs, samples);
    if (inputs.element() != deploy::Element::u8) {
        return bytes_from(values);
    }
    std::vector<std::uint8_t> bytes;
    for (float const value : values) {
        bytes.push_back(static_cast<std::uint8_t>(std::lround(value * 255)));
    }
    return bytes_from(bytes);
}

torch::Tensor our_outputs(train::SavedModel const& saved, data::Dataset const& set,
                          std::int64_t samples) {
    torch::NoGradGuard const no_grad;
    nn::EvaluationMode const evaluation(*saved.model);
    auto shape = saved.inputs.sample();
    shape.insert(shape.begin(), samples);
    torch::Tensor inputs;
    if (saved.inputs.info.whole) {
        auto values = values_of<std::int64_t>(set, saved.inputs, samples);
        inputs = torch::from_blob(values.data(), shape, torch::kInt64).clone();
    } else {
        auto values = values_of<float>(set, saved.inputs, samples);
        inputs = torch::from_blob(values.data(), shape).clone();
    }
    std::vector<torch::Tensor> parts;
    for (auto const& part : inputs.split(batch)) {
        parts.push_back(saved.model->forward(nn::Fields(part)).to(torch::kFloat32));
    }
    return torch::cat(parts).contiguous();
}

} // namespace

ExportDifference compare_export(std::filesystem::path const& file, train::SavedModel const& saved,
                                config::Data const& data, std::int64_t samples) {
    auto const scaled = train::samples_for(saved, data, data.test);
    auto const unscaled = train::samples_for(saved, data, data.test);
    unscaled->scale_as({}, {});
    ExportDifference found;
    found.samples = std::min(samples, scaled->samples());
    auto const ours = our_outputs(saved, *scaled, found.samples);
    auto const raw = raw_inputs(*unscaled, saved.inputs, found.samples);
    auto const run = deploy::run_exported(
        file, {raw, static_cast<std::size_t>(found.samples), saved.inputs.element(), 3});
    if (static_cast<std::int64_t>(run.outputs.size()) != ours.numel()) {
        throw Error(
            ExitCode::data,
            {concat(file.string(), " does not match the model"),
             concat("for the same samples, the file returns ",
                    amount_of(run.outputs.size(), "number"), " and the model ", ours.numel()),
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

double export_latency(std::filesystem::path const& file, nn::ExportInputs const& inputs) {
    auto const bytes = elements_of(inputs) * deploy::bytes_of(inputs.element());
    std::vector<std::byte> const zeros(bytes);
    return deploy::run_exported(file, {zeros, 1, inputs.element(), 20}).seconds_per_sample;
}

} // namespace lockstep::app
