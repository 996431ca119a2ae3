#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace lockstep::data {

/// The samples of a data set in two parts: a share that was drawn, and the others; each in the
/// order of the data set, every sample in one of them. 8 bytes for each that was drawn.
class Division {
  public:
    /// `drawn` ascends, and lies in [0, samples); `drawn_of_class` says how many of each class it
    /// holds.
    Division(std::int64_t samples, std::vector<std::int64_t> drawn,
             std::vector<std::int64_t> drawn_of_class)
        : samples_(samples), drawn_(std::move(drawn)), drawn_of_class_(std::move(drawn_of_class)) {}

    std::int64_t drawn() const noexcept { return static_cast<std::int64_t>(drawn_.size()); }
    std::int64_t others() const noexcept { return samples_ - drawn(); }

    std::vector<std::int64_t> const& drawn_of_class() const noexcept { return drawn_of_class_; }

    /// The sample of the data set that is number `i` of a part.
    std::int64_t drawn_at(std::int64_t i) const { return drawn_[static_cast<std::size_t>(i)]; }
    std::int64_t other_at(std::int64_t i) const;

  private:
    std::int64_t samples_;
    std::vector<std::int64_t> drawn_;
    std::vector<std::int64_t> drawn_of_class_;
};

/// Draws `percent` of `samples` samples with a seed: a function of these three only.
Division draw_share(std::int64_t samples, double percent, std::uint64_t seed);

/// The same for each class, as nearly as whole samples allow, so that both parts have the classes
/// in the proportions of all; at least one sample of each class remains among the others. `counts`
/// are the samples of each class; `for_labels` calls what it is given with all labels, one after
/// the other.
Division draw_share_of_classes(
    std::vector<std::int64_t> const& counts, double percent, std::uint64_t seed,
    std::function<void(std::function<void(std::span<std::int64_t const>)> const&)> const&
        for_labels);

} // namespace lockstep::data
