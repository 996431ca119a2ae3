#include "lockstep/data/dataset.hpp"

#include "lockstep/base/error.hpp"
#include "lockstep/base/hash.hpp"
#include "lockstep/base/text.hpp"

#include <algorithm>
#include <cstring>
#include <glob.h>

#include "format.hpp"

namespace lockstep::data {

std::vector<std::filesystem::path> expand_files(std::string const& files) {
    std::vector<std::filesystem::path> paths;
    for (auto const& part : split(files, ',')) {
        if (part.find_first_of("*?[") == std::string::npos) {
            paths.emplace_back(part);
            continue;
        }
        glob_t found{};
        if (::glob(part.c_str(), 0, nullptr, &found) == 0) {
            paths.insert(paths.end(), found.gl_pathv, found.gl_pathv + found.gl_pathc);
        } else {
            ::globfree(&found);
            throw Error(ExitCode::no_input, {concat("no file matches ", part), "nothing to read",
                                             "Check the path in [data]"});
        }
        ::globfree(&found);
    }
    return paths;
}

Dataset::Dataset(DatasetOptions const& options) {
    auto const paths = expand_files(options.files);
    if (paths.empty()) {
        throw Error(ExitCode::usage, {"a data set without files", "no file is named",
                                      "Set data.train, or the set that is asked for"});
    }
    for (auto const& path : paths) {
        open_shard(path, options);
    }
    make_tables();
}

void Dataset::open_shard(std::filesystem::path const& path, DatasetOptions const& options) {
    auto const opened = open_samples(path, {options.inputs, options.targets});
    if (shards_.empty()) {
        sample_shape_ = opened.sample_shape;
        input_type_ = opened.input_type;
        mean_ = opened.mean;
        std_ = opened.std;
        declared_names_ = opened.class_names;
        names_ = opened.class_names;
    }
    auto const require = [&](bool same, std::string const& what) {
        if (!same) {
            throw Error(ExitCode::data,
                        {path.string(), concat("its ", what, " is not that of the files before"),
                         "List files of one data set only"});
        }
    };
    require(opened.sample_shape == sample_shape_, "shape of a sample");
    require(opened.input_type == input_type_, "type of inputs");
    require(opened.mean == mean_ && opened.std == std_, "mean or std");
    require(opened.class_names == declared_names_, "list of classes");
    auto const first = samples();
    shards_.push_back({File::open_read(path), opened.inputs_at, first});
    targets_.insert(targets_.end(), opened.targets.begin(), opened.targets.end());
    if (declared_names_.empty()) {
        auto numbered = complete_names({}, opened.targets, path);
        if (numbered.size() > names_.size()) {
            names_ = std::move(numbered);
        }
    }
    check_labels(path, first);
    fingerprint_ = hash64(concat(fingerprint_, " ", opened.fingerprint));
}

void Dataset::check_labels(std::filesystem::path const& path, std::int64_t first) const {
    for (auto at = static_cast<std::size_t>(first); at < targets_.size(); ++at) {
        if (targets_[at] < 0 || targets_[at] >= classes()) {
            throw Error(ExitCode::data,
                        {concat("label ", targets_[at], " of sample ",
                                static_cast<std::int64_t>(at) - first, " in ", path.string()),
                         concat("labels are 0 to ", classes() - 1),
                         "Correct the labels, or name all classes at the import"});
        }
    }
}

void Dataset::make_tables() {
    std::size_t const channels = std::max<std::size_t>(mean_.size(), 1);
    for (std::size_t channel = 0; channel < channels; ++channel) {
        auto& table = tables_.emplace_back();
        for (std::size_t value = 0; value < table.size(); ++value) {
            table[value] = static_cast<float>(value) / 255.0F;
            if (!mean_.empty()) {
                table[value] = (table[value] - static_cast<float>(mean_[channel])) /
                               static_cast<float>(std_[channel]);
            }
        }
    }
}

std::vector<std::int64_t> Dataset::class_counts() const {
    std::vector<std::int64_t> counts(names_.size(), 0);
    for (auto const target : targets_) {
        ++counts[static_cast<std::size_t>(target)];
    }
    return counts;
}

void Dataset::read_targets(std::span<std::int64_t const> indices,
                           std::span<std::int64_t> into) const {
    for (std::size_t i = 0; i < indices.size(); ++i) {
        into[i] = targets_[static_cast<std::size_t>(indices[i])];
    }
}

void Dataset::read_inputs(std::span<std::int64_t const> indices, std::span<float> into) const {
    auto const values = h5::elements(sample_shape_);
    auto const sample_bytes = values * h5::size_of(input_type_);
    std::vector<std::byte> raw;
    for (std::size_t i = 0; i < indices.size();) {
        auto const shard = std::prev(std::upper_bound(
            shards_.begin(), shards_.end(), indices[i],
            [](std::int64_t index, Shard const& candidate) { return index < candidate.first; }));
        auto const end = std::next(shard) == shards_.end() ? samples() : std::next(shard)->first;
        // Samples that lie side by side are read at once.
        std::size_t run = 1;
        while (i + run < indices.size() &&
               indices[i + run] == indices[i] + static_cast<std::int64_t>(run) &&
               indices[i + run] < end) {
            ++run;
        }
        raw.resize(run * sample_bytes);
        auto const at = static_cast<std::uint64_t>(indices[i] - shard->first);
        shard->file.read_at(shard->inputs_at + at * sample_bytes, raw);
        convert(raw, into.subspan(i * values, run * values));
        i += run;
    }
}

namespace {

template <class Stored>
void normalise(std::span<std::byte const> raw, std::span<float> into,
               std::pair<std::vector<double> const&, std::vector<double> const&> const& moments,
               std::size_t plane) {
    auto const& [mean, std] = moments;
    for (std::size_t begin = 0; begin < into.size(); begin += plane) {
        auto const channel = mean.empty() ? 0 : begin / plane % mean.size();
        float const shift = mean.empty() ? 0 : static_cast<float>(mean[channel]);
        float const scale = mean.empty() ? 1 : static_cast<float>(std[channel]);
        for (std::size_t i = begin; i < begin + plane; ++i) {
            Stored value{};
            std::memcpy(&value, raw.data() + i * sizeof(Stored), sizeof(Stored));
            into[i] = (static_cast<float>(value) - shift) / scale; // exact for 0 and 1
        }
    }
}

} // namespace

void Dataset::convert(std::span<std::byte const> raw, std::span<float> into) const {
    // Channels are the first dimension of a sample; with one mean they do not matter.
    std::size_t const plane = h5::elements(sample_shape_) / tables_.size();
    std::pair<std::vector<double> const&, std::vector<double> const&> const moments{mean_, std_};
    switch (input_type_) {
    case h5::Type::u8:
        for (std::size_t begin = 0; begin < into.size(); begin += plane) {
            auto const& table = tables_[begin / plane % tables_.size()];
            for (std::size_t i = begin; i < begin + plane; ++i) {
                into[i] = table[std::to_integer<std::size_t>(raw[i])];
            }
        }
        break;
    case h5::Type::i16:
        normalise<std::int16_t>(raw, into, moments, plane);
        break;
    case h5::Type::i32:
        normalise<std::int32_t>(raw, into, moments, plane);
        break;
    case h5::Type::f32:
        normalise<float>(raw, into, moments, plane);
        break;
    default:
        normalise<double>(raw, into, moments, plane);
        break;
    }
}

} // namespace lockstep::data
