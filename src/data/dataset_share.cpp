#include "base/text.hpp"
#include "data/division.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>

#include "dataset_parts.hpp"

namespace lockstep::data {

std::pair<Dataset, Dataset> Dataset::divided(double percent, std::uint64_t seed) const {
    auto const all = samples();
    auto const by_class = [&](auto const& take) {
        for_labels(0, all, [&](auto const&, auto const& labels) { take(labels); });
    };
    auto const division = std::make_shared<Division const>(
        has_labels() ? draw_share_of_classes(counts_, percent, seed, by_class)
                     : draw_share(all, percent, seed));
    if (division->drawn() == 0) {
        throw Error(ExitCode::usage,
                    {concat("data.validation = ", percent, " %"),
                     concat("this share of the ", all, " samples is empty",
                            has_labels() ? " (the share is taken from each class, and one sample "
                                           "of each class must remain for training)"
                                         : ""),
                     "Name a larger share, add samples, or name a separate file"});
    }
    return {Dataset(*this, division, false), Dataset(*this, division, true)};
}

Dataset::Dataset(Dataset const& whole, std::shared_ptr<Division const> division, bool drawn)
    : parts_(whole.parts_), division_(std::move(division)), drawn_(drawn), facts_(whole.facts_),
      names_(whole.names_), counts_(whole.counts_), has_numbers_(whole.has_numbers_),
      fingerprint_(whole.fingerprint_) {
    if (has_labels()) {
        for (std::size_t i = 0; i < counts_.size(); ++i) {
            auto const of_class = division_->drawn_of_class()[i];
            counts_[i] = drawn ? of_class : counts_[i] - of_class;
        }
    }
    if (whole.weights_ && !drawn) {
        weights_ = std::make_shared<std::vector<double>>();
        for (std::int64_t sample = 0; sample < samples(); ++sample) {
            weights_->push_back(
                (*whole.weights_)[static_cast<std::size_t>(number_in_files(sample))]);
        }
    }
}

std::int64_t Dataset::samples() const noexcept {
    if (!division_) {
        return parts_->source.samples;
    }
    return drawn_ ? division_->drawn() : division_->others();
}

std::int64_t Dataset::number_in_files(std::int64_t sample) const {
    if (!division_) {
        return sample;
    }
    return drawn_ ? division_->drawn_at(sample) : division_->other_at(sample);
}

std::span<std::int64_t const> Dataset::numbers_in_files(std::span<std::int64_t const> own,
                                                        std::vector<std::int64_t>& buffer) const {
    if (!division_) {
        return own;
    }
    buffer.resize(own.size());
    std::transform(own.begin(), own.end(), buffer.begin(),
                   [&](std::int64_t sample) { return number_in_files(sample); });
    return buffer;
}

} // namespace lockstep::data
