#include "data/inspect.hpp"

#include "base/file.hpp"
#include "base/hash.hpp"
#include "base/list.hpp"
#include "base/text.hpp"
#include "data/format.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/data/dataset.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <span>

namespace lockstep::data {

namespace {

/// Where the values of a dataset are, unless that is in the file itself.
std::string place_of(h5::File const& file, std::string const& name) {
    auto const origin = file.origin(name);
    std::vector<std::string> const others(origin.sources.begin(), origin.sources.end());
    std::string const linked =
        origin.file == file.path()
            ? ""
            : concat("in ", origin.file.string(), " as ", origin.name, others.empty() ? "" : ", ");
    if (origin.is_virtual) {
        return concat(linked, "a view of datasets in ",
                      others.empty() ? "the same file" : joined(others, ", "));
    }
    return others.empty() ? linked : concat(linked, "raw values in ", joined(others, ", "));
}

/// `files` is a path here, whatever is in it.
DatasetOptions alone(DatasetOptions options) {
    options.files = list_of({options.files});
    return options;
}

} // namespace

std::vector<std::filesystem::path> files_of(DatasetOptions const& options) {
    std::filesystem::path const path = options.files;
    auto const file = h5::File::open(path);
    std::vector<std::filesystem::path> files{path};
    auto const add = [&](std::filesystem::path const& other) {
        if (std::ranges::find(files, other) == files.end()) {
            files.push_back(other);
        }
    };
    for (auto const& names : {options.inputs, options.targets}) {
        for (auto const& name : list_texts(names)) {
            readable_dataset(file, name, options.sample_per_file ? Entries::one : Entries::samples);
            auto const origin = file.origin(name);
            add(origin.file);
            if (origin.is_virtual) { // others are raw values
                std::ranges::for_each(origin.sources, add);
            }
        }
    }
    return files;
}

DataInfo describe(DatasetOptions const& options) {
    Dataset const dataset(alone(options));
    std::filesystem::path const path = options.files;
    auto const file = h5::File::open(path);
    auto fields = dataset.inputs();
    fields.insert(fields.end(), dataset.targets().begin(), dataset.targets().end());
    std::vector<std::string> places;
    places.reserve(fields.size());
    for (auto const& field : fields) {
        places.push_back(place_of(file, field.name));
    }
    return {path,
            std::filesystem::file_size(path),
            file.text_attribute("/", "format") == format_name,
            file.exists("checksums"),
            dataset.samples(),
            fields,
            places,
            dataset.class_names(),
            dataset.class_counts(),
            dataset.mean(),
            dataset.std()};
}

bool has_checksums(std::filesystem::path const& path) {
    return h5::File::open(path).exists("checksums");
}

namespace {

/// A dataset's bytes, once it is sure that it and its checksums fit the file.
ByteRange bytes_of(h5::File const& file, std::string const& name, std::uint64_t file_bytes) {
    if (!file.exists(name)) {
        throw Error(ExitCode::data, {file.path().string(), concat("it has no dataset ", name),
                                     "Only files made by lockstep data import can be verified"});
    }
    auto const range = bytes_in_file(file.info(name), file_bytes);
    if (!range) {
        throw Error(ExitCode::data,
                    {file.path().string(), concat("dataset ", name, " does not lie in the file"),
                     "The file is damaged: import the data again"});
    }
    return *range;
}

std::vector<std::uint64_t> stored_checksums(File const& raw, ByteRange const& range) {
    std::vector<std::uint64_t> sums(range.count / sizeof(std::uint64_t));
    raw.read_at(range.first, std::as_writable_bytes(std::span(sums)));
    return sums;
}

/// The datasets that have checksums; all else, their names too, is under one together.
std::set<std::string> checked_datasets(h5::File const& file) {
    std::set<std::string> names;
    std::string const prefix = "checksums/";
    for (auto const& info : file.datasets()) {
        if (info.path.starts_with(prefix) && info.path != prefix + "rest") {
            names.insert(info.path.substr(prefix.size()));
        }
    }
    return names;
}

/// Whether the first target is a class for each place, of those that the file names: it may name
/// the values of a sample, too.
bool has_classes_of_places(Dataset const& dataset) {
    auto const& target = dataset.targets().front();
    auto const names = static_cast<std::uint64_t>(dataset.classes());
    return !dataset.has_labels() && names > 0 && target.shape != h5::Shape{names} &&
           (target.whole || target.shape.size() > 1);
}

/// Counts in the values of sample `sample`, element [begin, end).
void count(NotFinite& found, std::span<float const> values, std::int64_t sample) {
    auto const wrong =
        std::count_if(values.begin(), values.end(), [](float v) { return !std::isfinite(v); });
    if (wrong > 0) {
        found.first = found.count == 0 ? sample : found.first;
        found.count += wrong;
        ++found.samples;
    }
}

} // namespace

std::vector<std::string> warnings_of(DatasetOptions const& options) {
    return Dataset(alone(options)).remarks();
}

std::vector<NotFinite> look_through(DatasetOptions const& options) {
    constexpr std::size_t bytes_at_once = std::size_t{4} << 20;
    Dataset dataset(alone(options));
    if (has_classes_of_places(dataset)) {
        dataset.expect_classes(dataset.classes());
    }
    auto fields = dataset.inputs();
    fields.insert(fields.end(), dataset.targets().begin(), dataset.targets().end());
    std::vector<NotFinite> found;
    std::uint64_t sample_bytes = 1;
    for (auto const& field : fields) {
        found.push_back({.dataset = field.name});
        sample_bytes += h5::elements(field.shape) * h5::size_of(field.type);
    }
    auto const at_once =
        static_cast<std::int64_t>(std::max<std::uint64_t>(bytes_at_once / sample_bytes, 1));
    Batch batch;
    Scratch scratch;
    for (std::int64_t first = 0; first < dataset.samples(); first += at_once) {
        auto const samples = std::min(at_once, dataset.samples() - first);
        batch.indices.resize(static_cast<std::size_t>(samples));
        std::iota(batch.indices.begin(), batch.indices.end(), first);
        dataset.read(batch, scratch);
        for (std::size_t f = 0; f < fields.size(); ++f) {
            auto const& values = batch.fields[f];
            auto const row = h5::elements(fields[f].shape);
            std::span<float const> const reals = values.reals;
            for (std::size_t i = 0; !reals.empty() && i < batch.indices.size(); ++i) {
                auto const begin =
                    fields[f].ragged ? static_cast<std::size_t>(values.offsets[i]) : i;
                auto const end =
                    fields[f].ragged ? static_cast<std::size_t>(values.offsets[i + 1]) : i + 1;
                count(found[f], reals.subspan(begin * row, (end - begin) * row), batch.indices[i]);
            }
        }
    }
    std::erase_if(found, [](NotFinite const& field) { return field.count == 0; });
    return found;
}

std::vector<std::string> datasets_added_to(std::filesystem::path const& path) {
    return added_datasets(h5::File::open(path));
}

std::vector<DataDamage> verify(std::filesystem::path const& path) {
    auto const file = h5::File::open(path);
    auto const raw = File::open_read(path);
    auto const file_bytes = raw.size();
    std::vector<DataDamage> damage;
    std::vector<ByteRange> covered;
    std::vector<std::byte> block;
    for (auto const& name : checked_datasets(file)) {
        auto const range = bytes_of(file, name, file_bytes);
        auto const sums = stored_checksums(raw, bytes_of(file, "checksums/" + name, file_bytes));
        if (sums.size() != checksum_blocks(range.count)) {
            throw Error(ExitCode::data,
                        {path.string(), concat("the checksums of ", name, " do not fit its size"),
                         "The file is damaged: import the data again"});
        }
        for (std::uint64_t i = 0; i < sums.size(); ++i) {
            auto const begin = range.first + i * checksum_block;
            block.resize(std::min(checksum_block, range.count - i * checksum_block));
            raw.read_at(begin, block);
            if (hash64(block) != sums[i]) {
                damage.push_back({name, begin, begin + block.size() - 1});
            }
        }
        covered.push_back(range);
    }
    auto const rest = bytes_of(file, "checksums/rest", file_bytes);
    covered.push_back(rest);
    if (added_datasets(file).empty() &&
        stored_checksums(raw, rest) != std::vector{checksum_outside(raw, covered)}) {
        damage.push_back({"what is not samples", 0, file_bytes - 1});
    }
    return damage;
}

} // namespace lockstep::data
