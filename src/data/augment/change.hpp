#pragma once

#include "data/augment/draws.hpp"
#include "data/augment/sample.hpp"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::data {

class Entry;

/// A random change of a sample. Any thread may apply it.
class Change {
  public:
    virtual ~Change() = default;
    virtual void apply(AugmentedSample& sample, SampleDraws& draws) const = 0;
};

/// A kind of entry that data.augment may list.
struct ChangeKind {
    std::string_view name;
    std::vector<std::string_view> arguments; ///< as messages name them
    std::size_t needed;                      ///< arguments without which it makes no sense
    double probability;                      ///< of an entry that names none
    bool moves;         ///< elements of a sample, so that targets per position must move with them
    bool needs_colours; ///< values from 0 to 1
    std::string_view samples; ///< that it fits
    std::string_view meaning;
    std::unique_ptr<Change> (*make)(Entry const& entry); ///< null: it mixes samples

    /// As it is written: "flip[:AXIS]".
    std::string form() const;
};

/// All of them, in the order of the documentation.
std::span<ChangeKind const> change_kinds();

// What makes them. Throws Error 64 for arguments that make no sense, or do not fit the samples.
std::unique_ptr<Change> make_flip(Entry const& entry);
std::unique_ptr<Change> make_crop(Entry const& entry);
std::unique_ptr<Change> make_shift(Entry const& entry);
std::unique_ptr<Change> make_resized_crop(Entry const& entry);
std::unique_ptr<Change> make_affine(Entry const& entry);
std::unique_ptr<Change> make_noise(Entry const& entry);
std::unique_ptr<Change> make_gain(Entry const& entry);
std::unique_ptr<Change> make_speed(Entry const& entry);
std::unique_ptr<Change> make_mask(Entry const& entry);
std::unique_ptr<Change> make_erase(Entry const& entry);
std::unique_ptr<Change> make_blur(Entry const& entry);
std::unique_ptr<Change> make_colour(Entry const& entry);
std::unique_ptr<Change> make_gray(Entry const& entry);
std::unique_ptr<Change> make_gamma(Entry const& entry);
std::unique_ptr<Change> make_sharpness(Entry const& entry);
std::unique_ptr<Change> make_posterize(Entry const& entry);
std::unique_ptr<Change> make_solarize(Entry const& entry);
std::unique_ptr<Change> make_invert(Entry const& entry);
std::unique_ptr<Change> make_autocontrast(Entry const& entry);
std::unique_ptr<Change> make_equalize(Entry const& entry);
std::unique_ptr<Change> make_randaugment(Entry const& entry);
std::unique_ptr<Change> make_trivialaugment(Entry const& entry);

} // namespace lockstep::data
