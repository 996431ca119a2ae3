#include "federate/scaffold.hpp"

#include "lockstep/base/error.hpp"

#include <algorithm>

namespace lockstep::federate {

namespace {

/// A coordinator that has not learnt anything yet has none.
std::vector<float> or_zeros(std::vector<float> values, std::size_t count) {
    values.resize(count, 0);
    return values;
}

} // namespace

ModelVector correction_of(ModelVector const& model, std::vector<float> const& all,
                          std::vector<float> const& own) {
    auto correction = model;
    auto const control = or_zeros(all, model.values.size());
    for (std::size_t i = 0; i < correction.values.size(); ++i) {
        correction.values[i] = control[i] - own.at(i);
    }
    return correction;
}

std::vector<float> next_control(ModelVector const& first, ModelVector const& trained,
                                std::vector<float> const& own, double rates) {
    if (first.fingerprint() != trained.fingerprint() || !(rates > 0)) {
        throw Error(ExitCode::data,
                    {"the trained model cannot be used",
                     rates > 0
                         ? "the weights have other names or shapes than the federation's model"
                         : "the learning rates of the round's steps add up to 0 (no step was "
                           "trained, or the schedule sets all rates to 0)",
                     "Remove this round's run directory, and run the same command again"});
    }
    auto const control = or_zeros(first.control, own.size());
    auto const is_buffer = first.buffers();
    auto next = own;
    for (std::size_t i = 0; i < next.size(); ++i) {
        auto const gradient =
            (static_cast<double>(first.values[i]) - static_cast<double>(trained.values[i])) / rates;
        next[i] = is_buffer[i] ? 0 : static_cast<float>(own[i] - control[i] + gradient);
    }
    return next;
}

void move_control(ModelVector& model, std::span<double const> change, double counted, double all) {
    auto const before = model.control_samples > 0 ? model.control_samples : all;
    model.control = or_zeros(model.control, change.size());
    for (std::size_t i = 0; i < change.size(); ++i) {
        model.control[i] =
            static_cast<float>((before * model.control[i] + counted * change[i]) / all);
    }
    model.control_samples = all;
}

} // namespace lockstep::federate
