#include "base/hash.hpp"
#include "base/text.hpp"
#include "data/class_names.hpp"
#include "h5/element_type.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "dataset_parts.hpp"

namespace lockstep::data {

namespace {

constexpr std::int64_t labels_at_once = 1 << 16;

} // namespace

bool Dataset::has_labels() const noexcept {
    return targets_.front().is_label();
}

void Dataset::look_through_labels(std::size_t file, Hasher& hasher) {
    if (!has_labels()) {
        return;
    }
    bool const declared = !parts_->declared_names->empty();
    auto const count = [&](std::span<std::int64_t const> indices,
                           std::span<std::int64_t const> labels) {
        hasher.add(std::as_bytes(labels));
        auto const largest = *std::max_element(labels.begin(), labels.end());
        auto const needed =
            static_cast<std::size_t>(std::clamp<std::int64_t>(largest, -1, max_classes - 1) + 1);
        counts_.resize(std::max(counts_.size(), declared ? names_.size() : needed), 0);
        require_labels(indices, labels);
        for (auto const label : labels) {
            ++counts_[static_cast<std::size_t>(label)];
        }
    };
    for_labels(parts_->source.first_of_file[file], parts_->source.samples, count);
}

void Dataset::for_labels(std::int64_t first, std::int64_t end, LabelVisitor const& visit) const {
    std::vector<std::int64_t> labels;
    std::vector<std::int64_t> indices;
    Scratch scratch;
    for (auto at = first; at < end;) {
        auto const count = std::min(labels_at_once, end - at);
        labels.resize(static_cast<std::size_t>(count));
        indices.resize(labels.size());
        std::iota(indices.begin(), indices.end(), at);
        parts_->targets.front().read_wholes(parts_->source, indices, labels, scratch);
        visit(indices, labels);
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
            throw Error(ExitCode::data,
                        {concat("label ", whole_text(targets_.front().type, labels[i]),
                                " of sample ", indices[i] - parts_->source.first_of_file[file],
                                " in ", parts_->source.path_of(file).string()),
                         classes == 0 ? std::string("labels must be 0 or more")
                                      : concat("labels must be 0 to ", classes - 1),
                         "Correct the labels, or name all classes when you import the data"});
        }
    }
}

void Dataset::require_classes(std::span<std::int64_t const> samples, Values const& values) const {
    auto const& field = targets_.front();
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
             "Correct the labels, or set task.classes"});
    };
    auto const last = static_cast<double>(expected_classes_ - 1);
    auto const real = std::ranges::find_if(values.reals, [&](float value) {
        return !(value >= 0 && value <= last && value == std::trunc(value)); // NaN neither
    });
    if (real != values.reals.end()) {
        refuse(static_cast<std::size_t>(real - values.reals.begin()), *real);
    }
    auto const whole = std::ranges::find_if(
        values.wholes, [&](std::int64_t value) { return value < 0 || value >= expected_classes_; });
    if (whole != values.wholes.end()) {
        refuse(static_cast<std::size_t>(whole - values.wholes.begin()),
               whole_text(field.type, *whole));
    }
}

std::vector<std::string> const& Dataset::declared_classes() const noexcept {
    return *parts_->declared_names;
}

} // namespace lockstep::data
