#include "data/augment.hpp"

#include "base/number.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "h5/element_type.hpp"
#include "h5/file.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>

namespace lockstep::data {

namespace {

/// SampleDraws from a key.
class SampleDraws {
  public:
    explicit SampleDraws(std::uint64_t key) : key_(key) {}

    /// In [0, 1).
    double uniform() { return static_cast<double>(mixed(key_ ^ count_++) >> 11) * 0x1p-53; }
    /// In [0, end).
    std::int64_t below(std::int64_t end) {
        return static_cast<std::int64_t>(uniform() * static_cast<double>(end));
    }
    /// Two at a time (Box and Muller, 1958).
    std::pair<double, double> normal() {
        auto const radius = std::sqrt(-2 * std::log(1 - uniform()));
        auto const angle = 2 * std::numbers::pi * uniform();
        return {radius * std::cos(angle), radius * std::sin(angle)};
    }

  private:
    std::uint64_t key_;
    std::uint64_t count_ = 0;
};

} // namespace

struct Augmentation::Sample {
    std::span<float> values;
    std::vector<std::int64_t> extents;

    /// Values between two neighbours along `axis`.
    std::int64_t stride(std::size_t axis) const {
        std::int64_t stride = 1;
        for (auto at = axis + 1; at < extents.size(); ++at) {
            stride *= extents[at];
        }
        return stride;
    }

    void flip(std::size_t axis) {
        auto const inner = stride(axis);
        auto const extent = extents[axis];
        auto const outer = static_cast<std::int64_t>(values.size()) / (inner * extent);
        for (std::int64_t block = 0; block < outer; ++block) {
            auto* const first = values.data() + block * inner * extent;
            for (std::int64_t low = 0, high = extent - 1; low < high; ++low, --high) {
                std::swap_ranges(first + low * inner, first + (low + 1) * inner,
                                 first + high * inner);
            }
        }
    }

    /// By `by` places along `axis`; zeros come in.
    void move(std::size_t axis, std::int64_t by) {
        auto const inner = stride(axis);
        auto const extent = extents[axis];
        auto const stay = std::max<std::int64_t>(extent - std::abs(by), 0) * inner;
        auto const gone = extent * inner - stay;
        for (auto* first = values.data(); first != values.data() + values.size();
             first += extent * inner) {
            if (by > 0) {
                std::copy_backward(first, first + stay, first + extent * inner);
                std::fill(first, first + gone, 0.0F);
            } else {
                std::copy(first + gone, first + extent * inner, first);
                std::fill(first + stay, first + extent * inner, 0.0F);
            }
        }
    }

    void add_noise(double deviation, SampleDraws& draws) {
        for (std::size_t at = 0; at < values.size(); at += 2) {
            auto const [one, two] = draws.normal();
            values[at] += static_cast<float>(deviation * one);
            if (at + 1 < values.size()) {
                values[at + 1] += static_cast<float>(deviation * two);
            }
        }
    }

    /// Zeros in a run of up to `max` along `axis` of [rows, columns].
    void mask(std::size_t axis, std::int64_t max, SampleDraws& draws) {
        auto const extent = extents[axis];
        auto const length = std::min(draws.below(max + 1), extent);
        auto const first = draws.below(extent - length + 1);
        auto const columns = extents[1];
        for (std::int64_t row = 0; row < extents[0]; ++row) {
            for (std::int64_t column = 0; column < columns; ++column) {
                auto const at = axis == 0 ? row : column;
                if (at >= first && at < first + length) {
                    values[static_cast<std::size_t>(row * columns + column)] = 0;
                }
            }
        }
    }
};

Augmentation::Augmentation(std::string const& wanted, FieldInfo const& input, std::uint64_t seed)
    : wanted_(wanted), shape_(input.shape), ragged_(input.ragged), seed_(seed) {
    if (trimmed(wanted) == "none" || trimmed(wanted).empty()) {
        return;
    }
    if (input.whole) {
        throw Error(
            ExitCode::usage,
            {concat("data.augment = ", wanted),
             "the first input holds whole numbers, such as tokens, which cannot be augmented",
             "Set data.augment = none"});
    }
    for (auto const& word : split(wanted, ',')) {
        changes_.push_back(parsed(word));
    }
}

Augmentation::Change Augmentation::parsed(std::string const& word) const {
    auto const parts = split(word, ':');
    auto const dimensions = shape_.size() + (ragged_ ? 1 : 0);
    auto const refuse = [&](std::string const& why) {
        throw Error(ExitCode::usage,
                    {concat("data.augment = ", wanted_, " (entry '", word, "')"), why,
                     "Use entries of the form flip, flip:AXIS, crop:PIXELS, noise:AMOUNT or "
                     "mask:ROWS:COLUMNS"});
    };
    auto const whole = [&](std::size_t at) {
        auto const value = number_of<double>(parts[at]).value_or(-1);
        if (value < 0 || value != std::floor(value) || value > 1e9) {
            refuse("expected a whole number of at least 0");
        }
        return static_cast<std::int64_t>(value);
    };
    std::string const name(parts.empty() ? "" : parts.front());
    if (name == "flip" && parts.size() <= 2) {
        auto const axis = parts.size() == 2 ? static_cast<std::size_t>(whole(1)) : dimensions - 1;
        if (dimensions == 0 || axis >= dimensions) {
            refuse(concat("a sample has no such dimension (it has ", dimensions,
                          ", numbered from 0)"));
        }
        return {.kind = Kind::flip, .axis = axis};
    }
    if (name == "crop" && parts.size() == 2) {
        if (dimensions < 2) {
            refuse(concat("a sample must have at least 2 dimensions, but has ", dimensions));
        }
        return {.kind = Kind::crop, .axis = dimensions - 2, .places = whole(1)};
    }
    if (name == "noise" && parts.size() == 2) {
        auto const deviation = number_of<double>(parts[1]).value_or(-1);
        if (!(deviation >= 0)) {
            refuse("expected a number of at least 0");
        }
        return {.kind = Kind::noise, .deviation = deviation};
    }
    if (name == "mask" && parts.size() == 3) {
        if (dimensions != 2) {
            refuse(concat("a sample has ", amount_of(dimensions, "dimension"),
                          ", but a mask needs two dimensions: rows and columns"));
        }
        return {.kind = Kind::mask, .places = whole(1), .columns = whole(2)};
    }
    refuse("unknown augmentation");
    return {};
}

bool Augmentation::moves_places() const noexcept {
    return std::any_of(changes_.begin(), changes_.end(), [](Change const& each) {
        return each.kind == Kind::flip || each.kind == Kind::crop;
    });
}

void Augmentation::change(Change const& change, Sample& sample, std::uint64_t key) const {
    SampleDraws draws(key);
    switch (change.kind) {
    case Kind::flip:
        if (draws.uniform() < 0.5) {
            sample.flip(change.axis);
        }
        break;
    case Kind::crop:
        for (auto const axis : {change.axis, change.axis + 1}) {
            sample.move(axis, draws.below(2 * change.places + 1) - change.places);
        }
        break;
    case Kind::noise:
        sample.add_noise(change.deviation, draws);
        break;
    case Kind::mask:
        sample.mask(0, change.places, draws);
        sample.mask(1, change.columns, draws);
        break;
    }
}

void Augmentation::apply(Batch& batch, std::int64_t epoch) const {
    if (empty() || batch.indices.empty()) {
        return;
    }
    auto& input = batch.fields.front();
    auto const row = static_cast<std::int64_t>(h5::elements(shape_));
    std::vector<std::int64_t> extents(shape_.begin(), shape_.end());
    if (ragged_) {
        extents.insert(extents.begin(), 0);
    }
    for (std::size_t at = 0; at < batch.indices.size(); ++at) {
        auto const first = ragged_ ? input.offsets[at] : static_cast<std::int64_t>(at);
        auto const rows = ragged_ ? input.offsets[at + 1] - first : 1;
        if (ragged_) {
            extents[0] = rows;
        }
        Sample sample{std::span(input.reals)
                          .subspan(static_cast<std::size_t>(first * row),
                                   static_cast<std::size_t>(rows * row)),
                      extents};
        for (std::size_t which = 0; which < changes_.size() && !sample.values.empty(); ++which) {
            change(changes_[which], sample,
                   random_key(seed_, Stream::augmentation,
                              {static_cast<std::uint64_t>(epoch),
                               static_cast<std::uint64_t>(batch.indices[at]), which}));
        }
    }
}

} // namespace lockstep::data
