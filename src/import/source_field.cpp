#include "source_field.hpp"

#include "base/text.hpp"
#include "data/checksums.hpp"
#include "data/convert.hpp"
#include "data/format.hpp"
#include "h5/element_type.hpp"
#include "h5/offsets.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>

#include "exact_conversion.hpp"

namespace lockstep::import {

namespace {

constexpr std::uint64_t bytes_per_read = std::uint64_t{8} << 20;

} // namespace

SourceField::SourceField(h5::File const& file, std::string path, std::optional<h5::Type> type,
                         std::string name)
    : path_(std::move(path)) {
    auto const info = data::readable_dataset(file, path_);
    auto const offsets = path_ + "_offsets";
    stored_ = *info.readable_as;
    kept_ = {.name = std::move(name),
             .type = type.value_or(stored_),
             .row = {info.shape.begin() + 1, info.shape.end()},
             .ragged = file.exists(offsets)};
    rows_ = info.shape.front();
    if (kept_.ragged) {
        offsets_ = h5::read_offsets(file, offsets, rows_);
    }
    rows_at_once_ =
        std::max<std::uint64_t>(bytes_per_read / std::max<std::uint64_t>(kept_.row_bytes(), 1), 1);
}

bool SourceField::is_label() const {
    return !kept_.ragged && h5::elements(kept_.row) == 1 && data::is_whole(kept_.type);
}

std::uint64_t SourceField::samples_at_once() const {
    return std::max<std::uint64_t>(rows_at_once_ * samples() / rows_, 1);
}

void SourceField::rescale(std::vector<double>& moments) const {
    auto const unit = [](h5::Type type) { return type == h5::Type::u8 ? 255.0 : 1.0; };
    for (auto& moment : moments) {
        moment = moment * unit(stored_) / unit(kept_.type);
    }
}

std::vector<std::byte> SourceField::read(h5::File const& file, std::uint64_t sample) {
    if (kept_.ragged) {
        auto const first = static_cast<std::uint64_t>(offsets_[sample]);
        auto const count = static_cast<std::uint64_t>(offsets_[sample + 1]) - first;
        std::vector<std::byte> bytes(count * kept_.row_bytes());
        if (!bytes.empty()) {
            read_rows(file, {first, count}, bytes);
        }
        return bytes;
    }
    if (sample < first_ || sample >= first_ + count_) {
        first_ = sample - sample % rows_at_once_;
        count_ = std::min<std::uint64_t>(rows_at_once_, rows_ - first_);
        block_.resize(count_ * kept_.row_bytes());
        read_rows(file, {first_, count_}, block_);
    }
    auto const at =
        block_.begin() + static_cast<std::ptrdiff_t>((sample - first_) * kept_.row_bytes());
    return {at, at + static_cast<std::ptrdiff_t>(kept_.row_bytes())};
}

/// HDF5 would take the nearest whole number for a fraction, and any for NaN, without a word.
void SourceField::read_rows(h5::File const& file, h5::File::Rows rows,
                            std::span<std::byte> into) const {
    if (stored_ == kept_.type) {
        file.read_rows(path_, stored_, rows, into);
        return;
    }
    std::vector<std::byte> raw(into.size() / h5::size_of(kept_.type) * h5::size_of(stored_));
    file.read_rows(path_, stored_, rows, raw);
    if (auto const misfit = convert_exactly(stored_, raw, kept_.type, into)) {
        auto const row = rows.first + misfit->element / h5::elements(kept_.row);
        auto const after =
            std::upper_bound(offsets_.begin(), offsets_.end(), static_cast<std::int64_t>(row));
        auto const sample =
            kept_.ragged ? static_cast<std::uint64_t>(after - offsets_.begin() - 1) : row;
        throw Error(ExitCode::data,
                    {concat("dataset ", path_, " of ", file.path().string()),
                     concat("one of its values does not fit ", h5::name_of(kept_.type), " (",
                            misfit->value, " in sample ", sample, ")"),
                     "Choose a type that can hold all values, or correct the data"});
    }
}

} // namespace lockstep::import
