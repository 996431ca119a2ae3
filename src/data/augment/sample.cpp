#include "data/augment/sample.hpp"

namespace lockstep::data {

template <class Function>
void AugmentedSample::change_values(Function change) {
    auto const length = input_.depth() * input_.height() * input_.width();
    for (std::int64_t channel = 0; channel < input_.channels(); ++channel) {
        auto* const values = input_.plane(channel);
        auto const shift = mean(channel);
        auto const scale = deviation(channel);
        for (std::int64_t i = 0; i < length; ++i) {
            values[i] = change(values[i], shift, scale);
        }
    }
}

void AugmentedSample::show_colours() {
    input_.put_places_last();
    if (shows_colours_) {
        return;
    }
    shows_colours_ = true;
    if (form_.mean.empty()) {
        return;
    }
    change_values([](float value, float mean, float std) { return value * std + mean; });
}

void AugmentedSample::normalise() {
    if (!shows_colours_) {
        return;
    }
    shows_colours_ = false;
    if (form_.mean.empty()) {
        return;
    }
    change_values([](float value, float mean, float std) { return (value - mean) / std; });
}

float AugmentedSample::blank(std::int64_t channel) const {
    return shows_colours_ ? mean(channel) : 0.0F;
}

std::span<float> AugmentedSample::stored() {
    normalise();
    input_.put_back();
    return input_.values();
}

void AugmentedSample::finish() {
    stored();
    if (real_target) {
        real_target->put_back();
    }
    if (class_target) {
        class_target->put_back();
    }
}

} // namespace lockstep::data
