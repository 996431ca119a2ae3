#include "data/inspect.hpp"

#include "base/list.hpp"
#include "base/text.hpp"
#include "data/format.hpp"
#include "data/sample_sources.hpp"

#include <algorithm>

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

/// What the first and the last sample were made from, if the file says so.
std::pair<std::string, std::string> outer_sources(h5::File const& file,
                                                  std::vector<FieldInfo> const& fields) {
    bool const is_field = std::ranges::find(fields, sources_name, &FieldInfo::name) != fields.end();
    auto rows = is_field ? std::nullopt : sources_of_samples(file, fields.front().name);
    return !rows || rows->count() == 0
               ? std::pair<std::string, std::string>()
               : std::pair(rows->at(file, 0), rows->at(file, rows->count() - 1));
}

} // namespace

DatasetOptions alone(DatasetOptions options) {
    options.files = list_of({options.files});
    return options;
}

DatasetOptions for_texts(DatasetOptions options) {
    auto const file = h5::File::open(options.files);
    if (options.sequence == 0 && file.exists(token_bytes_name) &&
        options.targets == DatasetOptions{}.targets && !file.exists(options.targets)) {
        options.sequence = 2; // cut as finely as it can be
    }
    return options;
}

std::vector<std::filesystem::path> files_of(DatasetOptions const& options) {
    std::filesystem::path const path = options.files;
    auto const file = h5::File::open(path);
    std::vector<std::filesystem::path> files{path};
    auto const add = [&](std::filesystem::path const& other) {
        if (std::ranges::find(files, other) == files.end()) {
            files.push_back(other);
        }
    };
    for (auto const& names : {options.inputs, options.sequence > 0 ? "" : options.targets}) {
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
    std::int64_t tokens = 0;
    std::int64_t documents = 0;
    if (fields.front().vocabulary > 0) {
        auto const& name = fields.front().name;
        tokens = static_cast<std::int64_t>(file.info(name).shape.front());
        if (auto const offsets = name + "_offsets"; file.exists(offsets)) {
            documents = static_cast<std::int64_t>(file.info(offsets).shape.front()) - 1;
        }
    }
    auto const [first, last] = outer_sources(file, fields);
    return {path,
            std::filesystem::file_size(path),
            file.text_attribute("/", "format") == format_name,
            file.exists("checksums"),
            dataset.samples(),
            fields,
            places,
            tokens,
            documents,
            dataset.class_names(),
            dataset.class_counts(),
            dataset.mean(),
            dataset.std(),
            first,
            last};
}

std::vector<std::string> warnings_of(DatasetOptions const& options) {
    return Dataset(alone(options)).remarks();
}

} // namespace lockstep::data
