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

    /// Zeros in a run of up to `max` along `axis`.
    void mask(std::size_t axis, std::int64_t max, SampleDraws& draws) {
        auto const inner = stride(axis);
        auto const extent = extents[axis];
        auto const length = std::min(draws.below(max + 1), extent);
        auto const begin = draws.below(extent - length + 1);
        for (auto* first = values.data(); first != values.data() + values.size();
             first += extent * inner) {
            std::fill(first + begin * inner, first + (begin + length) * inner, 0.0F);
        }
    }
};

Augmentation::Augmentation(std::string const& wanted, FieldInfo const& input, SampleAxes axes,
                           std::uint64_t seed)
    : wanted_(wanted), shape_(input.shape), ragged_(input.ragged), axes_(std::move(axes)),
      seed_(seed) {
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

void Augmentation::refuse(std::string const& word, std::string const& why,
                          std::string const& next) const {
    throw Error(ExitCode::usage,
                {concat("data.augment = ", wanted_, " (entry '", word, "')"), why, next});
}

std::size_t Augmentation::flipped_axis(std::string const& word,
                                       std::optional<std::int64_t> wanted) const {
    auto const& places = axes_.places;
    if (!wanted && places.empty()) {
        refuse(word, "a sample is a row of features, which has no mirror image",
               "Leave out flip, or write flip:0 if the values of a sample are a series");
    }
    if (!wanted && places.size() == 1 && dimensions() > 1) {
        refuse(word, "the last dimension of a sample holds features, which have no mirror image",
               "Leave out flip, or write flip:0 to reverse the rows of samples");
    }
    auto const axis = wanted ? static_cast<std::size_t>(*wanted) : places.back();
    if (axis >= dimensions()) {
        refuse(
            word,
            concat("a sample has no such dimension (it has ", dimensions(), ", numbered from 0)"),
            "Write flip, or a smaller number");
    }
    if (axes_.found && std::ranges::count(places, axis) == 0) {
        std::vector<std::string> others;
        for (auto const place : places) {
            others.push_back(concat("flip:", place));
        }
        refuse(word,
               concat("dimension ", axis, " of a sample holds ",
                      places.size() > 1 ? "the channels" : "features",
                      ", which have no mirror image"),
               others.empty() ? "Leave out flip" : concat("Write ", joined(others, " or ")));
    }
    return axis;
}

std::vector<std::size_t> Augmentation::moved_axes(std::string const& word) const {
    auto const& places = axes_.places;
    if (places.empty()) {
        refuse(word, "a sample is a row of features, which cannot be shifted", "Leave out crop");
    }
    return {places.end() - std::min<std::ptrdiff_t>(std::ssize(places), 2), places.end()};
}

std::vector<std::size_t> Augmentation::masked_axes(std::string const& word) const {
    if (dimensions() == 2) {
        return {0, 1};
    }
    if (axes_.places.size() != 2) {
        refuse(word,
               concat("a mask needs samples of rows and columns, but a sample has ",
                      amount_of(dimensions(), "dimension")),
               "Leave out mask");
    }
    return axes_.places;
}

Augmentation::Change Augmentation::parsed(std::string const& word) const {
    auto const parts = split(word, ':');
    auto const refuse_form = [&](std::string const& why) {
        refuse(word, why,
               "Use entries of the form flip, flip:AXIS, crop:PIXELS, noise:AMOUNT or "
               "mask:ROWS:COLUMNS");
    };
    auto const whole = [&](std::size_t at) {
        auto const value = number_of<double>(parts[at]).value_or(-1);
        if (value < 0 || value != std::floor(value) || value > 1e9) {
            refuse_form("expected a whole number of at least 0");
        }
        return static_cast<std::int64_t>(value);
    };
    std::string const name(parts.empty() ? "" : parts.front());
    if (name == "flip" && parts.size() <= 2) {
        auto const axis = parts.size() == 2 ? std::optional(whole(1)) : std::nullopt;
        return {.kind = Kind::flip, .axes = {flipped_axis(word, axis)}};
    }
    if (name == "crop" && parts.size() == 2) {
        return {.kind = Kind::crop, .axes = moved_axes(word), .places = whole(1)};
    }
    if (name == "noise" && parts.size() == 2) {
        auto const deviation = number_of<double>(parts[1]).value_or(-1);
        if (!(deviation >= 0)) {
            refuse_form("expected a number of at least 0");
        }
        return {.kind = Kind::noise, .deviation = deviation};
    }
    if (name == "mask" && parts.size() == 3) {
        return {
            .kind = Kind::mask, .axes = masked_axes(word), .places = whole(1), .columns = whole(2)};
    }
    refuse_form("unknown augmentation");
    return {};
}

void Augmentation::change(Change const& change, Sample& sample, std::uint64_t key) const {
    SampleDraws draws(key);
    switch (change.kind) {
    case Kind::flip:
        if (draws.uniform() < 0.5) {
            sample.flip(change.axes.front());
        }
        break;
    case Kind::crop:
        for (auto const axis : change.axes) {
            sample.move(axis, draws.below(2 * change.places + 1) - change.places);
        }
        break;
    case Kind::noise:
        sample.add_noise(change.deviation, draws);
        break;
    case Kind::mask:
        sample.mask(change.axes[0], change.places, draws);
        sample.mask(change.axes[1], change.columns, draws);
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
