#include "federate/mean_change.hpp"

#include "federate/noise.hpp"

#include <algorithm>

namespace lockstep::federate {

namespace {

void take_noisy_mean(std::vector<double>& sum, Charter const& charter, Secret const& noise) {
    add_gaussian_noise(sum, noise, charter.noise * charter.clip);
    for (auto& value : sum) {
        value /= charter.participation * static_cast<double>(charter.expected_sites);
    }
}

} // namespace

std::vector<double> mean_change(std::vector<std::uint32_t> const& sum, Roster const& sites,
                                std::vector<std::string> const& counted, Charter const& charter,
                                Secret const& noise) {
    auto const point = sites.fixed_point(charter);
    std::vector<double> change(sum.size());
    std::ranges::transform(sum, change.begin(),
                           [&](std::uint32_t word) { return point.decoded(word); });
    if (charter.is_private()) {
        take_noisy_mean(change, charter, noise);
        return change;
    }
    double weights = 0;
    for (auto const& member : sites.part(counted)) {
        weights += sites.weight_of(member, charter);
    }
    for (auto& value : change) {
        value /= weights;
    }
    return change;
}

std::vector<double> mean_of_noise(std::size_t values, Charter const& charter, Secret const& noise) {
    std::vector<double> change(values, 0);
    take_noisy_mean(change, charter, noise);
    return change;
}

} // namespace lockstep::federate
