#include "step_look.hpp"

#include "data/sample_sources.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace lockstep::measure {

namespace {

using Json = nlohmann::json;

/// The values that are finite, and how many values there are.
Spread spread_of(torch::Tensor const& tensor) {
    auto const values = tensor.detach().to(torch::kCPU, torch::kDouble).reshape(-1);
    auto const finite = values.masked_select(torch::isfinite(values));
    Spread spread{.values = values.numel()};
    if (finite.numel() > 0) {
        spread.minimum = finite.min().item<double>();
        spread.maximum = finite.max().item<double>();
        spread.sum = finite.sum().item<double>();
        spread.sum_of_squares = finite.square().sum().item<double>();
    }
    return spread;
}

Json packed_field(std::string const& name, nn::Field const& field) {
    auto const values = field.values.to(torch::kCPU).contiguous();
    auto const* const bytes = static_cast<std::uint8_t const*>(values.const_data_ptr());
    Json lengths = Json::array();
    if (field.lengths.defined()) {
        auto const counts = field.lengths.to(torch::kInt64).contiguous();
        lengths = std::vector<std::int64_t>(counts.const_data_ptr<std::int64_t>(),
                                            counts.const_data_ptr<std::int64_t>() + counts.numel());
    }
    return {{"name", name},
            {"whole", values.scalar_type() == torch::kInt64},
            {"shape", values.sizes().vec()},
            {"ragged", field.lengths.defined()},
            {"lengths", lengths},
            {"bytes", Json::binary({bytes, bytes + values.nbytes()})}};
}

/// float32 or int64, as they were handed out; named as the data set has them.
Json packed_fields(nn::Fields const& fields, std::vector<data::FieldInfo> const* infos,
                   std::string const& what) {
    Json all = Json::array();
    for (std::size_t at = 0; at < fields.size(); ++at) {
        auto const name =
            infos != nullptr && at < infos->size() ? (*infos)[at].name : what + std::to_string(at);
        all.push_back(packed_field(name, fields[at]));
    }
    return all;
}

/// Where the samples of a batch come from.
Json packed_samples(std::vector<std::int64_t> const& samples, train::WitnessedStep const& step) {
    Json all = Json::array();
    data::SampleSources sources(*step.set, step.sequence);
    for (auto const sample : samples) {
        auto const [file, number] = step.set->place_of(sample);
        all.push_back({{"sample", step.set->number_in_files(sample)},
                       {"file", file.string()},
                       {"number_in_file", number},
                       {"source", sources.of(sample)}});
    }
    return all;
}

/// The replica and the micro-batch of a batch, by its number on this rank in the step.
std::pair<std::int64_t, std::int64_t> place_in(train::WitnessedStep const& step,
                                               std::int64_t batch) {
    batch = std::max<std::int64_t>(batch, 0);
    return {step.node.first + batch / step.micro_batches, batch % step.micro_batches};
}

} // namespace

void StepLook::begin(train::WitnessedStep const& step) {
    step_ = step;
    batches_.clear();
    results_.clear();
    heard_.clear();
    first_.begin_step();
    watch_ = std::make_unique<OperatorWatch>(*this, *model_);
}

void StepLook::take(task::Tensors const& batch) {
    first_.begin_batch();
    in_backward_ = false;
    if (reason_ == For::dump) {
        batches_.push_back(batch);
    }
}

void StepLook::end(train::StepOutcome const& outcome,
                   std::vector<train::ReplicaResult> const& results) {
    watch_.reset();
    results_ = results;
    if (!outcome.skipped) {
        return;
    }
    if (skipped_ == 0 || last_skipped_ + 1 != step_.step) {
        skipped_ = step_.step;
        skipped_origin_ = origin();
    }
    last_skipped_ = step_.step;
}

std::optional<Origin> StepLook::origin() const {
    return first_.found() ? std::optional(Origin{step_, *first_.found()}) : std::nullopt;
}

std::pair<std::int64_t, std::int64_t> Origin::place() const {
    return place_in(step, value.batch);
}

/// Not of the sums of gradients, which depend on what else the rank computes.
bool StepLook::is_of_pass(OperatorSeen const& seen) {
    if (seen.backward.empty()) {
        return !batches_.empty() && !in_backward_;
    }
    in_backward_ = true;
    return seen.backward.find("AccumulateGrad") == std::string::npos;
}

void StepLook::heard(OperatorSeen const& seen) {
    if (reason_ == For::origin) {
        first_.heard(seen);
        return;
    }
    if (!is_of_pass(seen)) {
        return;
    }
    for (auto const& output : seen.outputs) {
        if (output.isTensor() && output.toTensor().defined() &&
            output.toTensor().is_floating_point() && output.toTensor().numel() > 0) {
            heard_.push_back({.batch = std::ssize(batches_) - 1,
                              .name = seen.name,
                              .backward = seen.backward,
                              .parameter = seen.parameter,
                              .spread = spread_of(output.toTensor())});
            return; // the others are what backward needs
        }
    }
}

std::string StepLook::packed() const {
    Json replicas = Json::array();
    for (std::size_t at = 0; at < results_.size(); ++at) {
        replicas.push_back({{"replica", step_.node.first + static_cast<std::int64_t>(at)},
                            {"loss_sum", results_[at].loss_sum},
                            {"weight", results_[at].weight}});
    }
    Json batches = Json::array();
    for (std::size_t at = 0; at < batches_.size(); ++at) {
        auto const [replica, micro] = place_in(step_, static_cast<std::int64_t>(at));
        bool const stored = step_.set != nullptr && at < step_.samples.size();
        batches.push_back(
            {{"replica", replica},
             {"micro_batch", micro},
             {"samples", stored ? packed_samples(step_.samples[at], step_) : Json::array()},
             {"inputs", packed_fields(batches_[at].inputs, stored ? &step_.set->inputs() : nullptr,
                                      "inputs")},
             {"targets", packed_fields(batches_[at].targets,
                                       stored ? &step_.set->targets() : nullptr, "targets")}});
    }
    Json operators = Json::array();
    for (auto const& each : heard_) {
        auto const [replica, micro] = place_in(step_, each.batch);
        operators.push_back({{"replica", replica},
                             {"micro_batch", micro},
                             {"name", each.name},
                             {"backward", each.backward},
                             {"parameter", each.parameter},
                             {"values", each.spread.values},
                             {"minimum", each.spread.minimum},
                             {"maximum", each.spread.maximum},
                             {"mean", each.spread.sum / static_cast<double>(each.spread.values)},
                             {"norm", std::sqrt(each.spread.sum_of_squares)}});
    }
    auto const bytes =
        Json::to_cbor(Json{{"replicas", replicas}, {"batches", batches}, {"operators", operators}});
    return {bytes.begin(), bytes.end()};
}

} // namespace lockstep::measure
