#include "field.hpp"

#include "base/text.hpp"
#include "data/convert.hpp"
#include "data/format.hpp"
#include "h5/element_type.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>

namespace lockstep::data {

std::int64_t Field::samples_together() const {
    auto const rows = columns_.front().rows_together();
    return info_.ragged
               ? 1
               : std::max<std::int64_t>(rows / std::max<std::int64_t>(window_.length, 1), 1);
}

Column::Context Field::context_of(Source& source) {
    return {source.files, source.columns, source.room, source.room_for_small};
}

Field Field::without_files() const {
    Field field(info_.name, is_input_, window_);
    field.info_ = info_;
    field.unapplied_ = unapplied_;
    field.elements_ = elements_;
    field.normaliser_ = normaliser_;
    return field;
}

void Field::pack(std::size_t file, std::size_t first, Source const& source, Packer& packer) const {
    auto const put = [&](std::vector<Column> const& columns) {
        columns[file].pack(packer, source.files, file > first ? &columns[file - 1] : nullptr);
    };
    put(columns_);
    if (info_.ragged) {
        put(offsets_);
    }
}

void Field::add(Unpacker& packed, Source& source) {
    auto const take = [&](std::vector<Column>& columns, std::string const& name) {
        columns.push_back(
            Column(packed, name, context_of(source), columns.empty() ? nullptr : &columns.back()));
    };
    take(columns_, info_.name);
    if (info_.ragged) {
        take(offsets_, offsets_name());
    }
}

std::int64_t Field::add(h5::File const& file, Source& source) {
    auto const& name = info_.name;
    auto const offsets = offsets_name();
    auto const one = source.sample_per_file;
    auto const found = readable_dataset(file, name, one ? Entries::one : Entries::samples);
    auto const context = context_of(source);
    bool const cut = window_.length > 0;
    Column column(file, name, context,
                  {.row = one ? Column::Row::dataset : Column::Row::entry,
                   .kept_if_small = !is_input_ && !cut,
                   .before = columns_.empty() ? nullptr : &columns_.back()});
    FieldInfo here{.name = name,
                   .type = column.type(),
                   .shape = {found.shape.begin() + (one ? 0 : 1), found.shape.end()},
                   .whole = is_whole(column.type()),
                   .ragged = !one && !cut && file.exists(offsets)};
    if (cut && (found.shape.size() != 1 || !here.whole)) {
        throw Error(
            ExitCode::data,
            {concat("dataset ", name, " of ", file.path().string()),
             concat("data.sequence needs whole numbers in 1 dimension, but this dataset has ",
                    h5::name_of(here.type), " values in ",
                    amount_of(found.shape.size(), "dimension")),
             "Import texts (lockstep data import text), or remove data.sequence"});
    }
    if (cut) {
        here.shape = {static_cast<std::uint64_t>(window_.length)};
    }
    if (here.whole && window_.of_tokens && found.shape.size() == 1 &&
        (cut || (is_input_ && here.ragged)) && file.exists(token_bytes_name)) {
        here.vocabulary = static_cast<std::int64_t>(file.info(token_bytes_name).shape.front());
        auto const end = file.number_attribute("/", end_of_text_name);
        here.end_of_text =
            end && end->size() == 1 ? static_cast<std::int64_t>(end->front()) : std::int64_t{-1};
    }
    if (!is_input_ && here.is_label()) {
        here.shape.clear(); // as people have it, [samples, 1] is [samples]
    }
    auto const rows = column.rows();
    column.find_checksums(file);
    columns_.push_back(std::move(column));
    if (columns_.size() == 1) {
        info_ = here;
        unapplied_ = unapplied_attributes(file, name);
        elements_ = h5::elements(here.shape);
    }
    require_alike(here, file);
    if (!here.ragged) {
        return cut ? samples_in(rows, file) : rows;
    }
    auto const given = readable_dataset(file, offsets);
    offsets_.emplace_back(file, offsets, context, Column::Form{.kept_if_small = true});
    if (!is_whole(offsets_.back().type()) || given.shape.size() != 1) {
        throw Error(ExitCode::data,
                    {file.path().string(),
                     concat("dataset ", offsets,
                            " must be one-dimensional, with integers of at most 64 bits"),
                     "For N samples, store N + 1 integers in this dataset: the first row of each "
                     "sample, then the number of rows"});
    }
    require_all_rows(file, offsets, rows);
    return offsets_.back().rows() - 1;
}

/// What lies before the first sample or after the last would be left out without a word.
void Field::require_all_rows(h5::File const& file, std::string const& offsets,
                             std::int64_t rows) const {
    std::array<std::int64_t, 2> ends{};
    auto const last = static_cast<std::uint64_t>(offsets_.back().rows()) - 1;
    auto const bytes = std::as_writable_bytes(std::span(ends));
    file.read_rows(offsets, h5::Type::i64, {0, 1}, bytes.first(sizeof(std::int64_t)));
    file.read_rows(offsets, h5::Type::i64, {last, 1}, bytes.last(sizeof(std::int64_t)));
    if (ends[0] != 0 || ends[1] != rows) {
        throw Error(ExitCode::data,
                    {file.path().string(),
                     concat("the values of dataset ", offsets, " go from ", ends[0], " to ",
                            ends[1], ", but must go from 0 to ", rows, ", the number of rows"),
                     "Copy the file again from its source, or create the file again"});
    }
}

/// The last sample has an entry after it, which is the last target.
std::int64_t Field::samples_in(std::int64_t rows, h5::File const& file) const {
    if (rows <= window_.length) {
        throw Error(ExitCode::data,
                    {concat("dataset ", info_.name, " of ", file.path().string()),
                     concat("it has ", rows, " tokens, but a sample needs ", window_.length,
                            " tokens and one more token as its last target"),
                     "Set a smaller data.sequence, or import more text into the file"});
    }
    return (rows - 1) / window_.length;
}

void Field::require_alike(FieldInfo const& other, h5::File const& file) const {
    auto const require = [&](bool same, std::string const& what) {
        if (!same) {
            throw Error(ExitCode::data, {file.path().string(),
                                         concat("the ", what, " of dataset ", info_.name,
                                                " differs from that of the previous files"),
                                         "Name only files that belong to the same data set"});
        }
    };
    require(other.shape == info_.shape, "shape of a sample");
    require(other.type == info_.type, "type");
    require(other.vocabulary == info_.vocabulary && other.end_of_text == info_.end_of_text,
            "vocabulary");
    require(other.ragged == info_.ragged, "layout (with or without offsets)");
}

void Field::prepare(std::vector<double> const& mean, std::vector<double> const& std, bool last) {
    // Tokens are numbers of things, labels are too; other inputs are real values.
    bool const tokens = info_.type == h5::Type::i64 || info_.type == h5::Type::u64;
    info_.whole =
        info_.whole && (tokens || !is_input_ || window_.length > 0 || info_.vocabulary > 0);
    if (!info_.whole) {
        normaliser_.emplace(info_.type, info_.shape, mean, std, last);
    }
}

} // namespace lockstep::data
