#include "data/augment/blur.hpp"

#include "base/text.hpp"
#include "base/vector_clones.hpp"
#include "data/augment/entry.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace lockstep::data {

namespace {

class Blur : public Change {
  public:
    Blur(std::int64_t kernel, double sigma_min, double sigma_max)
        : kernel_(kernel), sigma_min_(sigma_min), sigma_max_(sigma_max) {}
    void apply(AugmentedSample& sample, SampleDraws& draws) const override {
        gaussian_blur(sample, kernel_, draws.between(sigma_min_, sigma_max_));
    }

  private:
    std::int64_t kernel_;
    double sigma_min_;
    double sigma_max_;
};

std::vector<float> gaussian(std::int64_t kernel, double sigma) {
    std::vector<double> weights;
    for (std::int64_t i = 0; i < kernel; ++i) {
        auto const at = static_cast<double>(i - kernel / 2) / sigma;
        weights.push_back(std::exp(-0.5 * at * at));
    }
    auto const sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    std::vector<float> shares;
    for (auto const weight : weights) {
        shares.push_back(static_cast<float>(weight / sum));
    }
    return shares;
}

LOCKSTEP_VECTOR_CLONES void add_scaled(float const* __restrict from, float weight,
                                       std::int64_t count, float* __restrict to) {
    for (std::int64_t i = 0; i < count; ++i) {
        to[i] += from[i] * weight;
    }
}

std::int64_t mirrored(std::int64_t at, std::int64_t extent) {
    at = std::abs(at);
    return at < extent ? at : 2 * (extent - 1) - at;
}

/// First along its height, into rows with mirrored ends, and then along its width.
void blur_plane(float* plane, std::int64_t height, std::int64_t width,
                std::vector<float> const& weights, std::vector<float>& work) {
    auto const kernel = std::ssize(weights);
    auto const half = kernel / 2;
    auto const padded = width + 2 * half;
    work.resize(static_cast<std::size_t>(padded * height));
    for (std::int64_t y = 0; y < height; ++y) {
        auto* const row = work.data() + y * padded;
        std::fill(row, row + padded, 0.0F);
        for (std::int64_t k = 0; k < kernel; ++k) {
            add_scaled(plane + mirrored(y + k - half, height) * width,
                       weights[static_cast<std::size_t>(k)], width, row + half);
        }
        for (std::int64_t x = 0; x < half; ++x) {
            row[x] = row[half + mirrored(x - half, width)];
            row[half + width + x] = row[half + mirrored(width + x, width)];
        }
    }
    for (std::int64_t y = 0; y < height; ++y) {
        auto* const row = plane + y * width;
        std::fill(row, row + width, 0.0F);
        for (std::int64_t k = 0; k < kernel; ++k) {
            add_scaled(work.data() + y * padded + k, weights[static_cast<std::size_t>(k)], width,
                       row);
        }
    }
}

} // namespace

void gaussian_blur(AugmentedSample& sample, std::int64_t kernel, double sigma) {
    auto& grid = sample.input();
    grid.put_places_last();
    auto const weights = gaussian(kernel, sigma);
    for (std::int64_t channel = 0; channel < grid.channels(); ++channel) {
        for (std::int64_t depth = 0; depth < grid.depth(); ++depth) {
            blur_plane(grid.plane(channel, depth), grid.height(), grid.width(), weights,
                       sample.buffers().work);
        }
    }
}

std::unique_ptr<Change> make_blur(Entry const& entry) {
    auto const picture = entry.picture();
    auto const kernel = entry.whole(0, 1, 255);
    if (kernel % 2 == 0) {
        entry.refuse("KERNEL has no middle", concat("Write ", kernel + 1));
    }
    auto const& form = entry.form();
    for (auto const axis : picture) {
        auto const extent = static_cast<std::int64_t>(form.input.shape[axis]);
        if (extent <= kernel / 2) {
            entry.refuse(concat("a sample has only ", amount_of(extent, "element"),
                                " along dimension ", axis),
                         "Lower KERNEL");
        }
    }
    auto const sigma_min = entry.number(1, 1e-3, 1e3, 0.1);
    auto const sigma_max = entry.number(2, 1e-3, 1e3, entry.has(1) ? sigma_min : 2.0);
    entry.require_order(sigma_min, sigma_max);
    return std::make_unique<Blur>(kernel, sigma_min, sigma_max);
}

} // namespace lockstep::data
