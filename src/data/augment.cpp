#include "data/augment.hpp"

#include "base/random.hpp"
#include "base/text.hpp"
#include "data/augment/entry.hpp"
#include "h5/element_type.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <span>

namespace lockstep::data {

namespace {

/// Where the values of each sample of a batch lie in a field.
struct SampleRows {
    std::vector<std::int64_t> extents; ///< of a sample
    std::int64_t row = 1;              ///< elements of a sample, or of one of its rows
    bool ragged = false;

    SampleRows(h5::Shape const& shape, bool is_ragged)
        : extents(shape.begin(), shape.end()), row(static_cast<std::int64_t>(h5::elements(shape))),
          ragged(is_ragged) {
        if (ragged) {
            extents.insert(extents.begin(), 0);
        }
    }

    template <class Value>
    std::span<Value> of(std::size_t sample, std::vector<Value>& values,
                        std::vector<std::int64_t> const& offsets) {
        auto const first = ragged ? offsets[sample] : static_cast<std::int64_t>(sample);
        auto const rows = ragged ? offsets[sample + 1] - first : 1;
        if (ragged) {
            extents[0] = rows;
        }
        return std::span(values).subspan(static_cast<std::size_t>(first * row),
                                         static_cast<std::size_t>(rows * row));
    }
};

} // namespace

Augmentation::Augmentation(std::string const& wanted, SampleForm form, std::uint64_t seed)
    : form_(std::move(form)), seed_(seed) {
    if (trimmed(wanted) == "none" || trimmed(wanted).empty()) {
        return;
    }
    if (form_.input.whole) {
        throw Error(
            ExitCode::usage,
            {concat("data.augment = ", wanted),
             "the first input holds whole numbers, such as tokens, which cannot be augmented",
             "Set data.augment = none"});
    }
    for (auto const& word : split(wanted, ',')) {
        Entry const entry(wanted, word, form_);
        if (entry.kind().make == nullptr) {
            mixing_.add(entry);
            continue;
        }
        if (!mixing_.empty()) {
            entry.refuse("samples are mixed after all their own changes",
                         "Put mixup and cutmix at the end of the list");
        }
        steps_.push_back({entry.made(), entry.probability()});
        needs_colours_ =
            needs_colours_ || (entry.kind().needs_colours && form_.input.type != h5::Type::u8);
    }
}

namespace {

/// Refuses values that are no colours, before anything was done to them.
void require_from_0_to_1(AugmentedSample& sample, FieldInfo const& input) {
    constexpr float rounding = 1e-3F;
    sample.show_colours();
    auto const [low, high] = std::ranges::minmax(sample.input().values());
    if (!(low >= -rounding && high <= 1 + rounding)) {
        throw Error(ExitCode::data,
                    {concat("a sample of data.train has the value ", low < -rounding ? low : high,
                            " in dataset ", input.name),
                     "data.augment has entries that change colours, which are from 0 to 1 in "
                     "datasets of real values",
                     "Divide the values by their white, store them as u8, or leave out these "
                     "entries"});
    }
}

} // namespace

void Augmentation::apply(Batch& batch, std::int64_t epoch) const {
    if (!steps_.empty() && !batch.indices.empty()) {
        change(batch, epoch);
    }
    mixing_.apply(batch, form_,
                  random_key(seed_, Stream::mixing, {static_cast<std::uint64_t>(epoch)}));
}

void Augmentation::change(Batch& batch, std::int64_t epoch) const {
    SampleBuffers buffers;
    auto& input = batch.fields.front();
    SampleRows rows(form_.input.shape, form_.input.ragged);
    std::optional<SampleRows> target_rows;
    std::optional<GridShape> target_shape;
    if (form_.target) {
        target_rows.emplace(form_.target->shape, false);
        target_shape.emplace(target_rows->extents, form_.target->places);
    }
    for (std::size_t at = 0; at < batch.indices.size(); ++at) {
        auto const values = rows.of(at, input.reals, input.offsets);
        if (values.empty()) {
            continue;
        }
        GridShape const shape(rows.extents, form_.axes.places);
        AugmentedSample sample(form_, Grid<float>(values, shape, buffers.spare), buffers);
        if (target_shape) {
            auto& field = batch.fields[form_.target->field];
            if (field.wholes.empty()) {
                sample.real_target.emplace(target_rows->of(at, field.reals, field.offsets),
                                           *target_shape, buffers.target_spare);
            } else {
                sample.class_target.emplace(target_rows->of(at, field.wholes, field.offsets),
                                            *target_shape, buffers.class_spare);
            }
        }
        if (needs_colours_) {
            require_from_0_to_1(sample, form_.input);
        }
        for (std::size_t which = 0; which < steps_.size(); ++which) {
            auto const& step = steps_[which];
            SampleDraws draws(random_key(seed_, Stream::augmentation,
                                         {static_cast<std::uint64_t>(epoch),
                                          static_cast<std::uint64_t>(batch.indices[at]), which}));
            if (step.probability == 1 || draws.uniform() < step.probability) {
                step.change->apply(sample, draws);
            }
        }
        sample.finish();
    }
}

} // namespace lockstep::data
