#pragma once

#include "data/augment/change.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::data {

/// An entry of data.augment: NAME:ARGUMENT:…@PROBABILITY.
class Entry {
  public:
    /// Throws  Error 64 for a name that no kind has, or too many or too few arguments
    Entry(std::string const& list, std::string const& word, SampleForm const& form);

    ChangeKind const& kind() const { return *kind_; }
    SampleForm const& form() const { return form_; }
    double probability() const { return named_probability_.value_or(kind_->probability); }
    std::optional<double> named_probability() const { return named_probability_; }
    /// The change that it asks for.
    std::unique_ptr<Change> made() const { return kind_->make(*this); }

    bool has(std::size_t which) const { return which < arguments_.size(); }
    /// Throws  Error 64 where an argument is no number in [low, high]
    double number(std::size_t which, double low, double high) const;
    double number(std::size_t which, double low, double high, double otherwise) const {
        return has(which) ? number(which, low, high) : otherwise;
    }
    std::int64_t whole(std::size_t which, double low, double high) const;
    /// Refuses a range that ends before it begins.
    void require_order(double low, double high) const;
    [[noreturn]] void refuse(std::string const& why, std::string const& next) const;

    /// The last two places of a sample, its height and its width.
    ///
    /// Throws  Error 64 where it has no two
    std::vector<std::size_t> picture() const;
    /// The first place of a sample: time, or the depth of a volume.
    std::size_t time() const;
    /// Refuses samples that are no pictures of one or three channels with values from 0 to 1.
    void require_colours() const;
    void require_scales() const;

  private:
    [[noreturn]] void refuse_form(std::string const& why) const;

    std::string const& list_;
    std::string const& word_;
    SampleForm const& form_;
    ChangeKind const* kind_ = nullptr;
    std::vector<std::string> arguments_;
    std::optional<double> named_probability_;
};

/// Names in a list of entries whose changes move elements of a sample.
std::vector<std::string> moving_entries(std::string const& list);

/// Whether entries of a list mix the samples of a micro-batch.
bool mixes_samples(std::string const& list);

} // namespace lockstep::data
