#include "base/text.hpp"
#include "data/convert.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "field.hpp"

namespace lockstep::data {

namespace {

/// Neighbouring samples are read at once, but not so many that they fill the memory.
constexpr std::size_t max_bytes_at_once = std::size_t{8} << 20;

} // namespace

/// Where they are wanted if they are in order; else nowhere.
template <class Value>
std::span<Value> Field::Run::target(std::span<Value> values, std::size_t elements) const {
    auto const count = in_order ? static_cast<std::size_t>(rows.count) : 0;
    return values.subspan(positions.front() * elements, count * elements);
}

template <class Deliver>
void Field::for_runs(Source const& source, std::span<std::int64_t const> indices,
                     std::vector<std::size_t>& order, Deliver deliver) const {
    order.resize(indices.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (!std::is_sorted(indices.begin(), indices.end())) {
        std::sort(order.begin(), order.end(),
                  [&](std::size_t a, std::size_t b) { return indices[a] < indices[b]; });
        // Each batch begins somewhere else, so that workers do not wait for one another's chunks.
        std::rotate(order.begin(), std::find(order.begin(), order.end(), std::size_t{0}),
                    order.end());
    }
    auto const row_bytes = std::max<std::size_t>(sample_bytes(), 1);
    auto const max =
        static_cast<std::int64_t>(std::max<std::size_t>(max_bytes_at_once / row_bytes, 1));
    for (std::size_t i = 0; i < order.size();) {
        auto const first = indices[order[i]];
        auto const file = source.file_of(first);
        auto const end = std::min(source.end_of_file(file), first + max);
        auto next = i + 1;
        while (next < order.size() && indices[order[next]] < end &&
               indices[order[next]] >= indices[order[next - 1]] &&
               indices[order[next]] - indices[order[next - 1]] <= 1) {
            ++next;
        }
        auto const last = indices[order[next - 1]];
        auto const positions = std::span<std::size_t const>(order).subspan(i, next - i);
        auto const rows = static_cast<std::size_t>(last - first + 1);
        bool const in_order = positions.size() == rows &&
                              positions.back() == positions.front() + rows - 1 &&
                              std::is_sorted(positions.begin(), positions.end());
        deliver(Run{file,
                    {first - source.first_of_file[file], last - first + 1},
                    first,
                    positions,
                    in_order});
        i = next;
    }
}

/// Rows of the dataset that samples of a file are.
Span Field::rows_of(Span samples) const {
    if (window_.length == 0) {
        return samples;
    }
    return {samples.first * window_.length + window_.shift, samples.count * window_.length};
}

std::size_t Field::sample_bytes() const {
    return columns_.front().row_bytes() *
           static_cast<std::size_t>(std::max<std::int64_t>(window_.length, 1));
}

std::span<std::byte const> Field::read_run(Source& source, Run const& run, Scratch& scratch) const {
    auto const& column = columns_[run.file];
    auto const rows = rows_of(run.rows);
    auto const bytes = static_cast<std::size_t>(rows.count) * column.row_bytes();
    if (!column.view().empty()) {
        return column.view().subspan(static_cast<std::size_t>(rows.first) * column.row_bytes(),
                                     bytes);
    }
    scratch.raw.resize(std::max(scratch.raw.size(), bytes));
    auto const raw = std::span(scratch.raw).first(bytes);
    column.read(source.files, rows, raw, source.cache, scratch);
    return raw;
}

void Field::read_reals(Source& source, std::span<std::int64_t const> indices, std::span<float> into,
                       Scratch& scratch) const {
    for_runs(source, indices, scratch.order, [&](Run const& run) {
        auto const& column = columns_[run.file];
        auto const target = run.target(into, elements_);
        if (run.in_order && normaliser_->changes_nothing()) {
            column.read(source.files, run.rows, std::as_writable_bytes(target), source.cache,
                        scratch);
            return;
        }
        auto const raw = read_run(source, run, scratch);
        if (run.in_order) {
            (*normaliser_)(raw, target);
            return;
        }
        for (auto const position : run.positions) {
            auto const row = static_cast<std::size_t>(indices[position] - run.first);
            (*normaliser_)(raw.subspan(row * column.row_bytes(), column.row_bytes()),
                           into.subspan(position * elements_, elements_));
        }
    });
}

std::vector<double> Field::read_stored(Source& source, std::span<std::int64_t const> indices,
                                       Scratch& scratch) const {
    std::vector<double> values;
    for (auto const index : indices) {
        auto const file = source.file_of(index);
        auto const sample = index - source.first_of_file[file];
        auto const rows =
            info_.ragged ? rows_of_sample(source, file, sample, scratch) : Span{sample, 1};
        if (rows.count == 0) {
            continue;
        }
        auto const raw = read_run(source, {file, rows, index, {}, false}, scratch);
        with_type(info_.type, [&](auto stored) {
            for (std::size_t i = 0; i < raw.size() / sizeof stored; ++i) {
                values.push_back(static_cast<double>(element<decltype(stored)>(raw, i)));
            }
        });
    }
    return values;
}

void Field::read_wholes(Source& source, std::span<std::int64_t const> indices,
                        std::span<std::int64_t> into, Scratch& scratch) const {
    for_runs(source, indices, scratch.order, [&](Run const& run) {
        auto const raw = read_run(source, run, scratch);
        if (run.in_order) {
            to_wholes(info_.type, raw, run.target(into, elements_));
            return;
        }
        for (auto const position : run.positions) {
            auto const row = static_cast<std::size_t>(indices[position] - run.first);
            to_wholes(info_.type, raw.subspan(row * sample_bytes(), sample_bytes()),
                      into.subspan(position * elements_, elements_));
        }
    });
}

void Field::read_wholes(Source& source, Span samples, std::span<std::int64_t> into,
                        Scratch& scratch) const {
    auto const end = samples.first + samples.count;
    for (auto at = samples.first; at < end;) {
        auto const file = source.file_of(at);
        Span const rows{at - source.first_of_file[file],
                        std::min(end, source.end_of_file(file)) - at};
        auto const values = static_cast<std::size_t>(rows.count) * elements_;
        to_wholes(info_.type, read_run(source, {file, rows, at, {}, true}, scratch),
                  into.first(values));
        into = into.subspan(values);
        at += rows.count;
    }
}

void Field::read(Source& source, std::span<std::int64_t const> indices, Values& into,
                 Scratch& scratch) const {
    if (info_.ragged) {
        read_ragged(source, indices, into, scratch);
    } else if (info_.whole) {
        into.wholes.resize(indices.size() * elements_);
        read_wholes(source, indices, into.wholes, scratch);
    } else {
        into.reals.resize(indices.size() * elements_);
        read_reals(source, indices, into.reals, scratch);
    }
    if (info_.vocabulary > 0) {
        require_tokens(source, indices, into);
    } else if (!window_.of_tokens) {
        require_marks(source, indices, into);
    }
}

void Field::require_marks(Source const& source, std::span<std::int64_t const> indices,
                          Values const& values) const {
    auto const wrong = std::ranges::find_if(
        values.wholes, [](std::int64_t mark) { return mark != 0 && mark != 1; });
    if (wrong == values.wholes.end()) {
        return;
    }
    auto const place = (wrong - values.wholes.begin()) / static_cast<std::ptrdiff_t>(elements_);
    auto const sample = indices[static_cast<std::size_t>(place)];
    auto const file = source.file_of(sample);
    throw wrong_mark(concat("value ", *wrong, " of sample ", sample - source.first_of_file[file],
                            " in dataset ", info_.name, " of ", source.path_of(file).string()));
}

void Field::require_tokens(Source const& source, std::span<std::int64_t const> indices,
                           Values const& values) const {
    auto const wrong = std::ranges::find_if(
        values.wholes, [&](std::int64_t token) { return token < 0 || token >= info_.vocabulary; });
    if (wrong == values.wholes.end()) {
        return;
    }
    auto const at = wrong - values.wholes.begin();
    auto const place =
        info_.ragged ? std::ranges::upper_bound(values.offsets, at) - values.offsets.begin() - 1
                     : at / static_cast<std::ptrdiff_t>(elements_);
    auto const sample = indices[static_cast<std::size_t>(place)];
    auto const file = source.file_of(sample);
    throw Error(
        ExitCode::data,
        {concat("sample ", sample - source.first_of_file[file], " in dataset ", info_.name, " of ",
                source.path_of(file).string(), " holds the token ", *wrong),
         concat("the vocabulary has only the tokens 0 to ", info_.vocabulary - 1),
         "Import the texts again, because the file is damaged or was made with another tokenizer"});
}

Span Field::rows_of_sample(Source& source, std::size_t file, std::int64_t sample,
                           Scratch& scratch) const {
    auto const& offsets = offsets_[file];
    std::array<std::byte, 2 * sizeof(std::int64_t)> raw{};
    std::array<std::int64_t, 2> ends{};
    auto const bytes = std::span(raw).first(2 * offsets.row_bytes());
    offsets.read(source.files, {sample, 2}, bytes, source.cache, scratch);
    to_wholes(offsets.type(), bytes, ends);
    if (ends[0] < 0 || ends[1] < ends[0] || ends[1] > columns_[file].rows()) {
        throw Error(
            ExitCode::data,
            {concat("sample ", sample, " of ", source.path_of(file).string()),
             concat("the offsets of this sample into dataset ", info_.name, " are ", ends[0],
                    " and ", ends[1], ", but they must not decrease and must be from 0 to ",
                    columns_[file].rows()),
             "The file is damaged. Copy the file again from its source, or create the file again"});
    }
    return {ends[0], ends[1] - ends[0]};
}

void Field::read_ragged(Source& source, std::span<std::int64_t const> indices, Values& into,
                        Scratch& scratch) const {
    into.offsets.assign(1, 0);
    std::vector<Span> rows;
    for (auto const index : indices) {
        auto const file = source.file_of(index);
        rows.push_back(rows_of_sample(source, file, index - source.first_of_file[file], scratch));
        into.offsets.push_back(into.offsets.back() + rows.back().count);
    }
    auto const elements = static_cast<std::size_t>(into.offsets.back()) * elements_;
    into.wholes.resize(info_.whole ? elements : 0);
    into.reals.resize(info_.whole ? 0 : elements);
    for (std::size_t i = 0; i < indices.size(); ++i) {
        if (rows[i].count == 0) {
            continue;
        }
        auto const raw =
            read_run(source, {source.file_of(indices[i]), rows[i], indices[i], {}, false}, scratch);
        auto const at = static_cast<std::size_t>(into.offsets[i]) * elements_;
        auto const count = static_cast<std::size_t>(rows[i].count) * elements_;
        if (info_.whole) {
            to_wholes(info_.type, raw, std::span(into.wholes).subspan(at, count));
        } else {
            (*normaliser_)(raw, std::span(into.reals).subspan(at, count));
        }
    }
}

} // namespace lockstep::data
