#include "join.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>

#include "compressed_writer.hpp"
#include "part.hpp"
#include "writer.hpp"

namespace lockstep::import {

namespace {

Error missing_part(PartFile const& file) {
    return {ExitCode::io,
            {concat("cannot read ", file.path.string()),
             "this import has just written the file, but the file is now missing or damaged",
             "Check the disk, and put OUT on a file system that all hosts share"}};
}

ImportPart read_again(JoinPlan const& plan, PartFile const& file) {
    auto part = read_part(file.path, plan.identity, plan.form);
    if (!part) {
        throw missing_part(file);
    }
    return std::move(*part);
}

/// Calls `visit(file, first, last)` with the samples of each part that belong to a shard.
template <class Visit>
void for_parts_of(JoinPlan const& plan, ShardPlan const& shard, Visit const& visit) {
    auto const end = shard.first + shard.count;
    auto at = std::partition_point(plan.parts.begin(), plan.parts.end(), [&](PartFile const& file) {
        return std::pair(file.set, file.first + file.samples) <= std::pair(shard.set, shard.first);
    });
    for (; at != plan.parts.end() && at->set == shard.set && at->first < end; ++at) {
        auto const first = std::max(at->first, shard.first);
        auto const last = std::min(at->first + at->samples, end);
        if (first < last) {
            visit(*at, first - at->first, last - at->first);
        }
    }
}

/// Rows of a column before a sample of the part.
std::uint64_t rows_before(ImportField const& field, ImportPart::Column const& column,
                          std::uint64_t sample) {
    if (!field.ragged) {
        return sample;
    }
    std::uint64_t rows = 0;
    for (std::uint64_t i = 0; i < sample; ++i) {
        rows += column.sample_rows[i];
    }
    return rows;
}

std::vector<FieldExtent> extents_of(JoinPlan const& plan, ShardPlan const& shard) {
    auto const& fields = plan.form.fields;
    std::vector<FieldExtent> extents(fields.size());
    for (auto& extent : extents) {
        extent.rows = shard.count;
    }
    if (std::none_of(fields.begin(), fields.end(), [](ImportField const& f) { return f.ragged; })) {
        return extents;
    }
    for_parts_of(plan, shard, [&](PartFile const& file, std::uint64_t first, std::uint64_t last) {
        auto const of_part = read_part_rows(file.path, plan.identity, plan.form);
        if (!of_part) {
            throw missing_part(file);
        }
        for (std::size_t i = 0; i < fields.size(); ++i) {
            if (fields[i].ragged) {
                auto const rows = (*of_part)[i].begin();
                extents[i].sample_rows.insert(extents[i].sample_rows.end(),
                                              rows + static_cast<std::ptrdiff_t>(first),
                                              rows + static_cast<std::ptrdiff_t>(last));
            }
        }
    });
    for (std::size_t i = 0; i < fields.size(); ++i) {
        if (fields[i].ragged) {
            extents[i].rows = 0;
            for (auto const rows : extents[i].sample_rows) {
                extents[i].rows += rows;
            }
        }
    }
    return extents;
}

} // namespace

std::vector<ShardPlan> plan_shards(std::filesystem::path const& whole, std::size_t set,
                                   std::uint64_t samples, std::int64_t shard_samples) {
    if (shard_samples <= 0) {
        return {{set, 0, samples, whole}};
    }
    auto const max = static_cast<std::uint64_t>(shard_samples);
    auto const count = std::max<std::uint64_t>((samples + max - 1) / max, 1);
    std::vector<ShardPlan> shards;
    auto const numbered = [](std::uint64_t number) {
        return zero_padded(static_cast<std::int64_t>(number), 5);
    };
    for (std::uint64_t i = 0; i < count; ++i) {
        auto path = whole;
        path.replace_filename(concat(whole.stem().string(), "-", numbered(i), "-of-",
                                     numbered(count), whole.extension().string()));
        shards.push_back({set, i * max, std::min(max, samples - i * max), path});
    }
    return shards;
}

namespace {

template <class Writer>
std::uint64_t fill(Writer& writer, JoinPlan const& plan, ShardPlan const& shard) {
    auto const& fields = plan.form.fields;
    for_parts_of(plan, shard, [&](PartFile const& file, std::uint64_t first, std::uint64_t last) {
        auto const part = read_again(plan, file);
        for (std::size_t i = 0; i < fields.size(); ++i) {
            auto const& column = part.columns[i];
            auto const row = fields[i].row_bytes();
            auto const begin = rows_before(fields[i], column, first) * row;
            auto const end = rows_before(fields[i], column, last) * row;
            writer.append(i, std::span(column.bytes).subspan(begin, end - begin));
        }
    });
    return writer.commit();
}

} // namespace

std::uint64_t write_shard(JoinPlan const& plan, ShardPlan const& shard) {
    auto const extents = extents_of(plan, shard);
    if (plan.deflate > 0) {
        CompressedWriter writer(shard.path, plan.form, extents, plan.deflate);
        return fill(writer, plan, shard);
    }
    SetWriter writer(shard.path, plan.form, extents);
    return fill(writer, plan, shard);
}

} // namespace lockstep::import
