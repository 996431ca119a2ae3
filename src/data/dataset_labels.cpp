#include "base/hash.hpp"
#include "base/text.hpp"
#include "data/class_names.hpp"
#include "h5/element_type.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>

#include "dataset_parts.hpp"

namespace lockstep::data {

namespace {

constexpr std::int64_t labels_at_once = 1 << 15; ///< and what is made of them, within a cache

/// Adds how often each label occurs, each of which is within `counts`. Neighbours are counted
/// apart: where they are equal, none waits for what the one before it has written.
void count(std::span<std::int64_t const> labels, std::vector<std::int64_t>& counts) {
    constexpr std::size_t apart = 4;
    constexpr std::size_t few_classes = 1000;
    if (counts.size() > few_classes) {
        for (auto const label : labels) {
            ++counts[static_cast<std::size_t>(label)];
        }
        return;
    }
    std::array<std::array<std::int64_t, few_classes>, apart> parts{};
    std::size_t i = 0;
    for (; i + apart <= labels.size(); i += apart) {
        for (std::size_t part = 0; part < apart; ++part) {
            ++parts[part][static_cast<std::size_t>(labels[i + part])];
        }
    }
    for (; i < labels.size(); ++i) {
        ++parts[0][static_cast<std::size_t>(labels[i])];
    }
    for (auto const& part : parts) {
        std::ranges::transform(counts, part, counts.begin(), std::plus<>{});
    }
}

} // namespace

bool Dataset::has_labels() const noexcept {
    return !targets().empty() && targets().front().is_label() && parts_->labels != Labels::none &&
           !has_numbers_;
}

void Dataset::look_through_labels(std::size_t file, Hasher& hasher) {
    if (targets().empty() || !targets().front().is_label()) {
        return;
    }
    bool const declared = !facts_.classes.empty();
    bool const guessed = parts_->labels == Labels::guessed && !declared;
    auto const take = [&](std::int64_t first, std::span<std::int64_t const> labels) {
        hasher.add(std::as_bytes(labels));
        if (!has_labels()) {
            return;
        }
        std::int64_t min = 0;
        std::int64_t max = -1;
        for (auto const label : labels) {
            min = std::min(min, label);
            max = std::max(max, label);
        }
        has_numbers_ = guessed && (min < 0 || max >= max_classes);
        if (has_numbers_) {
            return;
        }
        auto const needed =
            static_cast<std::size_t>(std::clamp<std::int64_t>(max, -1, max_classes - 1) + 1);
        counts_.resize(std::max(counts_.size(), declared ? names_.size() : needed), 0);
        if (min < 0 || max >= static_cast<std::int64_t>(counts_.size())) {
            std::vector<std::int64_t> samples(labels.size());
            std::iota(samples.begin(), samples.end(), first);
            require_labels(samples, labels);
        }
        count(labels, counts_);
    };
    for_labels(parts_->source.first_of_file[file], parts_->source.samples, take);
}

void Dataset::for_labels(std::int64_t first, std::int64_t end, LabelVisitor const& visit) const {
    std::vector<std::int64_t> labels;
    Scratch scratch;
    for (auto at = first; at < end;) {
        auto const count = std::min(labels_at_once, end - at);
        labels.resize(static_cast<std::size_t>(count));
        parts_->targets.front().read_wholes(parts_->source, Span{at, count}, labels, scratch);
        visit(at, labels);
        at += count;
    }
}

void Dataset::name_classes() {
    if (has_labels()) {
        while (names_.size() < counts_.size()) {
            names_.push_back(std::to_string(names_.size()));
        }
    }
}

void Dataset::require_labels(std::span<std::int64_t const> indices,
                             std::span<std::int64_t const> labels) const {
    auto const classes = static_cast<std::int64_t>(counts_.size());
    for (std::size_t i = 0; i < labels.size(); ++i) {
        if (labels[i] < 0 || labels[i] >= classes) {
            auto const file = parts_->source.file_of(indices[i]);
            bool const from_one = classes > 0 && labels[i] == classes;
            throw Error(ExitCode::data,
                        {concat("label ", whole_text(targets().front().type, labels[i]),
                                " of sample ", indices[i] - parts_->source.first_of_file[file],
                                " in ", parts_->source.path_of(file).string()),
                         classes == 0 ? std::string("labels must be 0 or more")
                                      : concat("labels must be from 0 to ", classes - 1),
                         concat(from_one ? "If the labels count from 1, subtract 1 from each. "
                                           "Otherwise, correct"
                                         : "Correct",
                                " the labels, or name all classes when you import the data. If "
                                "they are real values, set task.kind = regression")});
        }
    }
}

void Dataset::require_classes(std::span<std::int64_t const> samples, Values const& values) const {
    auto const& field = targets().front();
    auto const refuse = [&](std::size_t element, auto value) {
        auto const row = element / std::max<std::uint64_t>(h5::elements(field.shape), 1);
        auto const after = std::ranges::upper_bound(values.offsets, static_cast<std::int64_t>(row));
        auto const place =
            field.ragged ? after - values.offsets.begin() - 1 : static_cast<std::ptrdiff_t>(row);
        auto const sample = samples[static_cast<std::size_t>(place)];
        auto const file = parts_->source.file_of(sample);
        throw Error(
            ExitCode::data,
            {concat("label ", value, " of sample ", sample - parts_->source.first_of_file[file],
                    " in dataset ", field.name, " of ", parts_->source.path_of(file).string()),
             concat("there are ", expected_classes_,
                    " classes, and labels are whole numbers from 0 to ", expected_classes_ - 1),
             concat(value) == concat(expected_classes_)
                 ? "If the labels count from 1, subtract 1 from each. Otherwise, correct them, or "
                   "set task.classes"
                 : "Correct the labels, or set task.classes"});
    };
    auto const last = static_cast<double>(expected_classes_ - 1);
    auto const is_ignored = [&](auto value) {
        return ignored_class_ && static_cast<double>(value) == static_cast<double>(*ignored_class_);
    };
    auto const real = std::ranges::find_if(values.reals, [&](float value) {
        bool const fits = value >= 0 && value <= last && value == std::trunc(value); // NaN neither
        return !fits && !is_ignored(value);
    });
    if (real != values.reals.end()) {
        refuse(static_cast<std::size_t>(real - values.reals.begin()), *real);
    }
    auto const whole = std::ranges::find_if(values.wholes, [&](std::int64_t value) {
        return (value < 0 || value >= expected_classes_) && !is_ignored(value);
    });
    if (whole != values.wholes.end()) {
        refuse(static_cast<std::size_t>(whole - values.wholes.begin()),
               whole_text(field.type, *whole));
    }
}

} // namespace lockstep::data
