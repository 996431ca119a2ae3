#include "data/sample_sources.hpp"

#include "base/text.hpp"
#include "data/format.hpp"
#include "h5/offsets.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>

namespace lockstep::data {

namespace {

bool is_ours(h5::File const& file) {
    return file.text_attribute("/", "format") == format_name;
}

void require_count(h5::File const& file, h5::TextRows const& rows, std::uint64_t samples) {
    if (rows.count() != samples) {
        throw Error(ExitCode::data,
                    {concat("dataset ", sources_name, " of ", file.path().string()),
                     concat("it has ", amount_of(rows.count(), "name"), " for ",
                            amount_of(samples, "sample")),
                     "Import the data again, or remove this dataset and its offsets"});
    }
}

/// How many samples, or documents, a file has.
std::uint64_t rows_of(h5::File const& file, std::string const& field) {
    auto const offsets = field + "_offsets";
    auto const shape = file.info(field).shape;
    return file.exists(offsets) ? file.info(offsets).shape.front() - 1
           : shape.empty()      ? 1
                                : shape.front();
}

} // namespace

std::optional<h5::TextRows> sources_in(h5::File const& file) {
    auto rows = h5::TextRows::in(file, sources_name);
    auto const offsets = concat(sources_name, "_offsets");
    if (!rows && is_ours(file) && file.exists(offsets)) {
        throw Error(ExitCode::data,
                    {concat("dataset ", sources_name, " of ", file.path().string()),
                     concat("it and ", offsets, " are not bytes and the first byte of each name"),
                     "Import the data again, or remove this dataset and its offsets"});
    }
    return rows;
}

std::optional<h5::TextRows> sources_of_samples(h5::File const& file, std::string const& field) {
    auto rows = sources_in(file);
    auto const samples = rows ? rows_of(file, field) : 0;
    if (rows && is_ours(file)) {
        require_count(file, *rows, samples);
    }
    return rows && rows->count() == samples ? rows : std::nullopt;
}

SampleSources::SampleSources(Dataset const& set, std::int64_t sequence)
    : set_(set), sequence_(sequence) {
    for (auto const* const fields : {&set.inputs(), &set.targets()}) {
        is_field_ |= std::ranges::find(*fields, sources_name, &FieldInfo::name) != fields->end();
    }
}

bool SampleSources::tell(std::span<std::filesystem::path const> files) const {
    return !is_field_ && std::ranges::any_of(files, [this](std::filesystem::path const& path) {
        return sources_of_samples(h5::File::open(path), set_.inputs().front().name).has_value();
    });
}

std::string SampleSources::of(std::int64_t sample) {
    if (is_field_) {
        return {};
    }
    auto const [path, number] = set_.place_of(sample);
    if (!file_ || file_->path() != path) {
        open(path);
    }
    auto row = static_cast<std::uint64_t>(number);
    if (sequence_ > 0 && documents_.size() > 1) {
        auto const after = std::ranges::upper_bound(documents_, number * sequence_);
        row = static_cast<std::uint64_t>(after - documents_.begin() - 1);
    }
    return rows_ ? rows_->at(*file_, row) : std::string();
}

void SampleSources::open(std::filesystem::path const& path) {
    file_.emplace(h5::File::open(path));
    auto const& tokens = set_.inputs().front().name;
    rows_ = sources_of_samples(*file_, tokens);
    documents_.clear();
    if (rows_ && sequence_ > 0 && file_->exists(tokens + "_offsets")) {
        documents_ =
            h5::read_offsets(*file_, tokens + "_offsets", file_->info(tokens).shape.front());
    }
}

void require_sources(h5::File const& file, std::uint64_t samples) {
    auto rows = sources_in(file);
    if (rows) {
        require_count(file, *rows, samples);
    }
    for (std::uint64_t i = 0; rows && i < samples; ++i) {
        static_cast<void>(rows->at(file, i));
    }
}

} // namespace lockstep::data
