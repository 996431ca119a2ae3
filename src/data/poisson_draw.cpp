#include "data/poisson_draw.hpp"

#include "base/random.hpp"

#include <cmath>
#include <utility>

namespace lockstep::data {

PoissonDraw::PoissonDraw(std::int64_t samples, double rate,
                         std::function<std::uint64_t(std::int64_t)> key_of)
    : samples_(samples), rate_(rate), key_of_(std::move(key_of)) {}

LatestOrders::Order PoissonDraw::draw(std::int64_t step) const {
    return latest_.of(static_cast<std::uint64_t>(step), [&] { return drawn_in(step); });
}

std::vector<std::int64_t> PoissonDraw::drawn_in(std::int64_t step) const {
    auto const key = key_of_(step);
    bool const all = rate_ >= 1;
    auto const threshold = all ? 0 : static_cast<std::uint64_t>(std::ldexp(rate_, 64));
    std::vector<std::int64_t> drawn;
    for (std::int64_t sample = 0; sample < samples_; ++sample) {
        if (all || mixed(key ^ static_cast<std::uint64_t>(sample)) < threshold) {
            drawn.push_back(sample);
        }
    }
    return drawn;
}

} // namespace lockstep::data
