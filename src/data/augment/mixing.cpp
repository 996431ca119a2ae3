#include "data/augment/mixing.hpp"

#include "base/text.hpp"
#include "data/augment/entry.hpp"
#include "data/augment/grid.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace lockstep::data {

namespace {

/// From a gamma distribution of scale 1 (Marsaglia, Tsang, ACM TOMS 26, 2000).
double gamma_draw(double shape, SampleDraws& draws) {
    if (shape < 1) {
        auto const larger = gamma_draw(shape + 1, draws);
        return larger * std::pow(1 - draws.uniform(), 1 / shape);
    }
    auto const d = shape - 1.0 / 3;
    while (true) {
        auto const normal = draws.normal().first;
        auto const root = 1 + normal / std::sqrt(9 * d);
        auto const v = root * root * root;
        if (v > 0 &&
            std::log(1 - draws.uniform()) < 0.5 * normal * normal + d - d * v + d * std::log(v)) {
            return d * v;
        }
    }
}

/// A rectangle as torchvision's CutMix has it, about a random middle.
struct CutBox {
    std::int64_t top;
    std::int64_t bottom;
    std::int64_t left;
    std::int64_t right;

    CutBox(double share, std::int64_t height, std::int64_t width, SampleDraws& draws) {
        auto const x = draws.below(width);
        auto const y = draws.below(height);
        auto const half = 0.5 * std::sqrt(1 - share);
        auto const half_width = static_cast<std::int64_t>(half * static_cast<double>(width));
        auto const half_height = static_cast<std::int64_t>(half * static_cast<double>(height));
        left = std::max<std::int64_t>(x - half_width, 0);
        right = std::min(x + half_width, width);
        top = std::max<std::int64_t>(y - half_height, 0);
        bottom = std::min(y + half_height, height);
    }

    double area() const { return static_cast<double>((bottom - top) * (right - left)); }
};

/// The values of each sample, and those of another one, `offset` samples further.
template <class Use>
void for_pairs(std::vector<float>& values, std::size_t samples, std::size_t offset, Use use) {
    auto const original = values;
    auto const length = values.size() / std::max<std::size_t>(samples, 1);
    for (std::size_t i = 0; i < samples; ++i) {
        auto const other = (i + offset) % samples;
        use(std::span(values).subspan(i * length, length),
            std::span(original).subspan(other * length, length));
    }
}

void blend(std::vector<float>& values, std::size_t samples, std::size_t offset, double share) {
    auto const own = static_cast<float>(share);
    for_pairs(values, samples, offset, [&](std::span<float> to, std::span<float const> from) {
        for (std::size_t at = 0; at < to.size(); ++at) {
            to[at] = to[at] * own + from[at] * (1 - own);
        }
    });
}

/// Puts the same rectangle of the other sample into each; the share that is left.
double paste(std::vector<float>& values, SampleForm const& form, std::size_t samples,
             std::size_t offset, double share, SampleDraws& draws) {
    GridShape const shape({form.input.shape.begin(), form.input.shape.end()}, form.axes.places);
    std::vector<float> spare;
    std::vector<float> other_spare;
    std::vector<float> copy;
    double left = 1;
    std::optional<CutBox> box;
    for_pairs(values, samples, offset, [&](std::span<float> to, std::span<float const> from) {
        copy.assign(from.begin(), from.end());
        Grid<float> grid(to, shape, spare);
        Grid<float> other(copy, shape, other_spare);
        grid.put_places_last();
        other.put_places_last();
        if (!box) {
            box.emplace(share, grid.height(), grid.width(), draws);
            left = 1 - box->area() / static_cast<double>(grid.height() * grid.width());
        }
        for (std::int64_t plane = 0; plane < grid.channels() * grid.depth(); ++plane) {
            for (auto y = box->top; y < box->bottom; ++y) {
                auto const row = (plane * grid.height() + y) * grid.width();
                std::copy(other.values().data() + row + box->left,
                          other.values().data() + row + box->right,
                          grid.values().data() + row + box->left);
            }
        }
        grid.put_back();
    });
    return left;
}

} // namespace

double beta_draw(double alpha, SampleDraws& draws) {
    auto const one = gamma_draw(alpha, draws);
    auto const other = gamma_draw(alpha, draws);
    return one + other > 0 ? one / (one + other) : 0.5;
}

void Mixing::add(Entry const& entry) {
    auto const& form = entry.form();
    if (form.input.ragged) {
        entry.refuse("samples of different lengths cannot be mixed",
                     concat("Leave out ", entry.kind().name));
    }
    bool const cuts = entry.kind().name == "cutmix";
    if (cuts) {
        static_cast<void>(entry.picture());
    }
    ways_.push_back({cuts, entry.number(0, 0.01, 100), entry.named_probability().value_or(0)});
    double sum = 0;
    for (auto const& way : ways_) {
        sum += way.probability;
    }
    if (sum > 1) {
        entry.refuse(concat("a micro-batch is mixed in one way, but their probabilities are ", sum,
                            " together"),
                     "Lower the probabilities after @");
    }
}

Mixing::Way const* Mixing::drawn(SampleDraws& draws) const {
    auto const chance = draws.uniform();
    double below = 0;
    for (auto const& way : ways_) {
        below += way.probability > 0 ? way.probability : 1 / static_cast<double>(ways_.size());
        if (chance < below) {
            return &way;
        }
    }
    return nullptr;
}

void Mixing::apply(Batch& batch, SampleForm const& form, std::uint64_t key) const {
    if (empty()) {
        return;
    }
    auto const samples = batch.indices.size();
    for (auto const index : batch.indices) {
        key = mixed(key ^ static_cast<std::uint64_t>(index));
    }
    SampleDraws draws(key);
    auto const* const way = drawn(draws);
    double share = 1;
    std::size_t offset = 0;
    if (way != nullptr && samples > 1) {
        offset = 1 + static_cast<std::size_t>(draws.below(static_cast<std::int64_t>(samples) - 1));
        share = beta_draw(way->alpha, draws);
        auto& values = batch.fields.front().reals;
        if (way->cuts) {
            share = paste(values, form, samples, offset, share, draws);
        } else {
            blend(values, samples, offset, share);
        }
    }
    auto& target = batch.fields[batch.first_target];
    if (!form.has_labels) {
        blend(target.reals, samples, offset, share);
        return;
    }
    Values others;
    others.wholes = target.wholes;
    std::ranges::rotate(others.wholes, others.wholes.begin() + static_cast<std::ptrdiff_t>(offset));
    Values shares;
    shares.reals.assign(samples, static_cast<float>(share));
    batch.fields.push_back(std::move(others));
    batch.fields.push_back(std::move(shares));
}

} // namespace lockstep::data
