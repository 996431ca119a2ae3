#include "lockstep/data/dataset.hpp"

#include "base/hash.hpp"
#include "base/list.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "data/class_names.hpp"
#include "data/convert.hpp"
#include "data/division.hpp"
#include "data/format.hpp"
#include "data/order.hpp"
#include "data/stage_in.hpp"
#include "data/weights.hpp"
#include "h5/file.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cmath>
#include <glob.h>
#include <numeric>
#include <optional>
#include <set>

#include "dataset_parts.hpp"

namespace lockstep::data {

std::vector<std::filesystem::path> expand_files(std::string const& files) {
    std::vector<std::filesystem::path> paths;
    for (auto const& [part, quoted] : list_entries(files)) {
        if (part.empty()) {
            throw Error(ExitCode::usage,
                        {concat("the list of files ", files), "one of its names is empty",
                         "Take the comma out, or name the file"});
        }
        std::error_code none; // a file of that very name comes before a pattern
        if (quoted || part.find_first_of("*?[") == std::string::npos ||
            std::filesystem::exists(part, none)) {
            paths.emplace_back(part);
            continue;
        }
        glob_t found{};
        // NOLINTNEXTLINE(concurrency-mt-unsafe): of a name that is opened by one thread
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

namespace {

constexpr std::int64_t labels_at_once = 1 << 16;

std::vector<Field> fields_named(std::string const& names, bool are_inputs) {
    std::vector<Field> fields;
    for (auto const& name : list_texts(names)) {
        fields.emplace_back(name, are_inputs);
    }
    if (fields.empty()) {
        throw Error(ExitCode::usage,
                    {are_inputs ? "data.inputs is empty" : "data.targets is empty",
                     "a sample needs at least one", "Name datasets inside the files, with commas"});
    }
    return fields;
}

/// What a field adds to the fingerprint of a file: the checksums of its bytes, where there are.
void add_checksums(Hasher& hasher, h5::File const& file, FieldInfo const& field) {
    if (auto const name = "checksums/" + field.name; file.exists(name)) {
        std::vector<std::uint64_t> checksums(h5::elements(file.info(name).shape));
        file.read(name, h5::Type::u64, checksums);
        hasher.add(std::as_bytes(std::span(checksums)));
    }
}

std::string identity_of(FieldInfo const& field, std::int64_t samples) {
    auto identity = concat(h5::name_of(field.type), " ", samples);
    for (auto const extent : field.shape) {
        identity += concat(" ", extent);
    }
    return identity;
}

void require_same(bool same, std::filesystem::path const& path, std::string const& what) {
    if (!same) {
        throw Error(ExitCode::data,
                    {path.string(), concat("its ", what, " is not that of the files before"),
                     "List files of one data set only"});
    }
}

} // namespace

Dataset::Dataset(DatasetOptions const& options) : parts_(std::make_shared<Parts>()) {
    auto const paths = expand_files(options.files);
    if (!options.weights.empty()) {
        weights_ = std::make_shared<std::vector<double>>();
        parts_->weights = options.weights;
    }
    if (paths.empty()) {
        throw Error(ExitCode::usage, {"a data set without files", "no file is named",
                                      "Set data.train, or the set that is asked for"});
    }
    parts_->source.sample_per_file = options.sample_per_file;
    parts_->inputs = fields_named(options.inputs, true);
    parts_->targets = fields_named(options.targets, false);
    for (auto const& path : paths) {
        open_file(path, options.weights);
    }
    if (weights_) {
        require_some_weight(*weights_, options.weights, paths.front());
    }
    name_classes();
}

Dataset::Dataset(Dataset&& other) noexcept = default;
Dataset::~Dataset() = default;

void Dataset::open_file(std::filesystem::path const& path, std::string const& weights) {
    auto const file = h5::File::open(path);
    auto& source = parts_->source;
    auto const number = source.named.size();
    source.named.push_back(source.files.add(path));
    std::optional<std::int64_t> samples;
    auto const add = [&](Field& field) {
        auto const count = field.add(file, source);
        if (count != samples.value_or(count)) {
            throw Error(ExitCode::data,
                        {path.string(),
                         concat(*samples, " samples of ", parts_->inputs.front().info().name,
                                " but ", count, " of ", field.info().name),
                         "Each needs one entry a sample"});
        }
        samples = count;
    };
    std::for_each(parts_->inputs.begin(), parts_->inputs.end(), add);
    std::for_each(parts_->targets.begin(), parts_->targets.end(), add);
    auto const [mean, std] = read_moments(file, parts_->inputs.front().info().shape);
    auto const names = file.texts_attribute("/", "classes").value_or(std::vector<std::string>{});
    if (source.first_of_file.empty()) {
        require_names(names, concat(path.string(), ": "));
        mean_ = mean;
        std_ = std;
        names_ = names;
        parts_->declared_names = names;
        for (auto& field : parts_->inputs) {
            bool const first = &field == &parts_->inputs.front();
            field.prepare(first ? mean : std::vector<double>{},
                          first ? std : std::vector<double>{});
            inputs_.push_back(field.info());
        }
        for (auto& field : parts_->targets) {
            field.prepare({}, {});
            targets_.push_back(field.info());
        }
    }
    require_same(mean == mean_ && std == std_, path, "mean or std");
    require_same(names == *parts_->declared_names, path, "list of classes");
    source.first_of_file.push_back(source.samples);
    source.samples += *samples;

    Hasher hasher;
    auto const identity = identity_of(inputs_.front(), *samples);
    hasher.add(std::as_bytes(std::span(identity)));
    look_through_labels(number, hasher);
    if (weights_) {
        auto const own = read_weights(file, weights, *samples);
        hasher.add(std::as_bytes(std::span(own)));
        weights_->insert(weights_->end(), own.begin(), own.end());
    }
    hasher.add(std::as_bytes(std::span(mean)));
    hasher.add(std::as_bytes(std::span(std)));
    add_checksums(hasher, file, inputs_.front());
    for (auto const* fields : {&inputs_, &targets_}) {
        for (auto const& field : *fields) {
            if (&field != &inputs_.front() && !(&field == &targets_.front() && has_labels())) {
                auto const other = identity_of(field, *samples);
                hasher.add(std::as_bytes(std::span(other)));
                add_checksums(hasher, file, field);
            }
        }
    }
    fingerprint_ = hash64(concat(fingerprint_, " ", hasher.digest()));
}

void Dataset::measure_as(Dataset const& training) {
    auto const& ours = parts_->declared_names;
    auto const& others = training.parts_->declared_names;
    if (ours && others && !ours->empty() && !others->empty()) {
        auto const [mine, theirs] = std::mismatch(names_.begin(), names_.end(),
                                                  training.names_.begin(), training.names_.end());
        if (mine != names_.end()) {
            throw Error(
                ExitCode::data,
                {parts_->source.path_of(0).string(),
                 concat("its class ", mine - names_.begin(), " is ", *mine, ", and that of ",
                        training.parts_->source.path_of(0).string(), " is ",
                        theirs == training.names_.end() ? std::string("not there") : *theirs),
                 "Import all sets with the same --classes"});
        }
    }
    scale_as(training.mean_, training.std_);
}

void Dataset::scale_as(std::vector<double> mean, std::vector<double> std) {
    auto const& shape = inputs_.front().shape;
    if (!fit_channels(mean.size(), shape)) {
        throw Error(ExitCode::data,
                    {parts_->source.path_of(0).string(),
                     concat("its samples have ", shape.empty() ? 1 : shape.front(),
                            " channels, and the training set's mean and std are of ", mean.size()),
                     "Import all sets alike"});
    }
    parts_->inputs.front().prepare(mean, std);
    mean_ = std::move(mean);
    std_ = std::move(std);
}

void Dataset::keep_in_memory(comm::Communicator const& host) {
    if (parts_->memory) {
        return; // the other part of these files has asked for it
    }
    std::vector<Field*> fields;
    std::size_t bytes = 0;
    for (auto* const some : {&parts_->inputs, &parts_->targets}) {
        for (auto& field : *some) {
            fields.push_back(&field);
            bytes += field.bytes_on_disk();
        }
    }
    parts_->memory.emplace(host, std::max<std::size_t>(bytes, 1));
    auto const for_fields = [&](auto use) {
        std::span memory(parts_->memory->data(), bytes);
        for (auto* const field : fields) {
            auto const own = memory.first(field->bytes_on_disk());
            memory = memory.subspan(own.size());
            use(*field, own);
        }
    };
    comm::agree(host, "reading data into memory", [&] {
        for_fields([&](Field& field, std::span<std::byte> own) {
            field.fill(parts_->source, own, host.rank(), host.size());
        });
    });
    for_fields([](Field& field, std::span<std::byte> own) { field.read_from_memory(own); });
}

void Dataset::keep_on_disk(std::filesystem::path const& directory, comm::Communicator const& host) {
    auto& files = parts_->source.files;
    std::set<std::size_t> numbers;
    for (auto const* const some : {&parts_->inputs, &parts_->targets}) {
        for (auto const& field : *some) {
            field.add_files_on_disk(numbers);
        }
    }
    std::vector<std::filesystem::path> originals;
    originals.reserve(numbers.size());
    for (auto const number : numbers) {
        originals.push_back(files.path(number));
    }
    auto const copies = stage_in(originals, directory, host);
    comm::agree(host, "reading copies of data", [&] {
        auto copy = copies.begin();
        for (auto const number : numbers) {
            files.read_from_copy(number, *copy++);
        }
    });
}

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

template <class Visit>
void Dataset::for_labels(std::int64_t first, std::int64_t end, Visit visit) const {
    std::vector<std::int64_t> labels;
    std::vector<std::int64_t> indices;
    Scratch scratch;
    for (auto at = first; at < end;) {
        auto const count = std::min(labels_at_once, end - at);
        labels.resize(static_cast<std::size_t>(count));
        indices.resize(labels.size());
        std::iota(indices.begin(), indices.end(), at);
        parts_->targets.front().read_wholes(parts_->source, indices, labels, scratch);
        visit(std::span<std::int64_t const>(indices), std::span<std::int64_t const>(labels));
        at += count;
    }
}

std::pair<Dataset, Dataset> Dataset::divided(double percent, std::uint64_t seed) const {
    auto const all = samples();
    auto const by_class = [&](auto const& take) {
        for_labels(0, all, [&](auto const&, auto const& labels) { take(labels); });
    };
    auto const division = std::make_shared<Division const>(
        has_labels() ? draw_share_of_classes(counts_, percent, seed, by_class)
                     : draw_share(all, percent, seed));
    if (division->drawn() == 0) {
        throw Error(ExitCode::usage,
                    {concat("data.validation = ", percent, " %"),
                     concat("of ", all, " samples", has_labels() ? " in their classes" : "",
                            " that is none, where one of each is left to learn from"),
                     "Name a larger share, give more samples, or a file of its own"});
    }
    return {Dataset(*this, division, false), Dataset(*this, division, true)};
}

Dataset::Dataset(Dataset const& whole, std::shared_ptr<Division const> division, bool drawn)
    : parts_(whole.parts_), division_(std::move(division)), drawn_(drawn), inputs_(whole.inputs_),
      targets_(whole.targets_), mean_(whole.mean_), std_(whole.std_), names_(whole.names_),
      counts_(whole.counts_.size(), 0), fingerprint_(whole.fingerprint_) {
    std::int64_t sample = 0; // of ours, the next
    auto const next = [&] { return sample < samples() ? number_in_files(sample) : -1; };
    if (has_labels()) {
        for_labels(0, whole.samples(), [&](auto const& indices, auto const& labels) {
            for (std::size_t i = 0; i < labels.size(); ++i) {
                if (indices[i] == next()) {
                    ++counts_[static_cast<std::size_t>(labels[i])];
                    ++sample;
                }
            }
        });
    }
    if (whole.weights_ && !drawn) {
        weights_ = std::make_shared<std::vector<double>>();
        for (sample = 0; sample < samples(); ++sample) {
            weights_->push_back((*whole.weights_)[static_cast<std::size_t>(next())]);
        }
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
                         classes == 0 ? std::string("labels are 0 and more")
                                      : concat("labels are 0 to ", classes - 1),
                         "Correct the labels, or name all classes at the import"});
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

std::vector<std::uint64_t> Dataset::weight_hashes(std::size_t groups) const {
    std::vector<std::uint64_t> hashes;
    auto const files = parts_->source.named.size();
    groups = weights_ ? std::min(files, groups) : 0;
    std::int64_t sample = 0;
    for (std::size_t i = 0; i < groups; ++i) {
        auto const end = parts_->source.end_of_file(files * (i + 1) / groups - 1);
        auto const first = static_cast<std::size_t>(sample);
        while (sample < samples() && number_in_files(sample) < end) {
            ++sample;
        }
        hashes.push_back(hash64(std::as_bytes(
            std::span(*weights_).subspan(first, static_cast<std::size_t>(sample) - first))));
    }
    return hashes;
}

std::vector<std::string> Dataset::remarks() const {
    constexpr std::size_t most = 8; // of files; of more nobody reads
    std::vector<std::string> remarks;
    std::vector<std::string> attributes;
    auto const& source = parts_->source;
    for (auto const* const fields : {&parts_->inputs, &parts_->targets}) {
        for (auto const& field : *fields) {
            for (std::size_t file = 0; file < source.named.size(); ++file) {
                for (auto const* const column : field.columns_of(file)) {
                    if (column->is_unwritten() && remarks.size() < most) {
                        remarks.push_back(
                            concat("warning: values of dataset ", column->name(), " of ",
                                   source.path_of(file).string(),
                                   " were never written: HDF5 gives its fill value for them"));
                    }
                }
            }
            if (!field.unapplied().empty()) {
                attributes.push_back(concat("dataset ", field.info().name, " has ",
                                            joined(field.unapplied(), ", ")));
            }
        }
    }
    if (!attributes.empty()) {
        remarks.push_back(concat("warning: attributes that are not applied in ",
                                 source.path_of(0).string(), ": ", joined(attributes, "; "),
                                 ": values are taken as they are stored"));
    }
    return remarks;
}

std::int64_t Dataset::samples() const noexcept {
    if (!division_) {
        return parts_->source.samples;
    }
    return drawn_ ? division_->drawn() : division_->others();
}

std::int64_t Dataset::number_in_files(std::int64_t sample) const {
    if (!division_) {
        return sample;
    }
    return drawn_ ? division_->drawn_at(sample) : division_->other_at(sample);
}

std::span<std::int64_t const> Dataset::numbers_in_files(std::span<std::int64_t const> own,
                                                        std::vector<std::int64_t>& buffer) const {
    if (!division_) {
        return own;
    }
    buffer.resize(own.size());
    std::transform(own.begin(), own.end(), buffer.begin(),
                   [&](std::int64_t sample) { return number_in_files(sample); });
    return buffer;
}

Blocks Dataset::blocks() const {
    constexpr std::int64_t window_bytes = std::int64_t{8} << 20;
    constexpr std::int64_t block_bytes = std::int64_t{1} << 20;
    auto const& input = inputs_.front();
    auto const sample_bytes = std::max<std::int64_t>(
        static_cast<std::int64_t>(h5::elements(input.shape) * h5::size_of(input.type)), 1);
    auto const together = parts_->inputs.front().samples_together();
    auto const block =
        together > 1 ? together : std::max<std::int64_t>(block_bytes / sample_bytes, 1);
    return {block, std::max<std::int64_t>(window_bytes / (block * sample_bytes), 4)};
}

std::uint64_t Dataset::chunks_decoded() const {
    return parts_->source.cache.made();
}

void Dataset::read(Batch& batch, Scratch& scratch) const {
    batch.first_target = inputs_.size();
    batch.fields.resize(inputs_.size() + targets_.size());
    auto values = batch.fields.begin();
    std::vector<std::int64_t> buffer;
    auto const samples = numbers_in_files(batch.indices, buffer);
    for (auto const* fields : {&parts_->inputs, &parts_->targets}) {
        for (auto const& field : *fields) {
            field.read(parts_->source, samples, *values++, scratch);
        }
    }
    if (has_labels()) {
        require_labels(samples, batch.targets());
    } else if (expected_classes_ > 0) {
        require_classes(samples, batch.fields[batch.first_target]);
    }
}

void Dataset::read_inputs(std::span<std::int64_t const> indices, std::span<float> into) const {
    Scratch scratch;
    std::vector<std::int64_t> buffer;
    auto const samples = numbers_in_files(indices, buffer);
    parts_->inputs.front().read_reals(parts_->source, samples, into, scratch);
}

void Dataset::read_targets(std::span<std::int64_t const> indices,
                           std::span<std::int64_t> into) const {
    Scratch scratch;
    std::vector<std::int64_t> buffer;
    auto const samples = numbers_in_files(indices, buffer);
    parts_->targets.front().read_wholes(parts_->source, samples, into, scratch);
}

} // namespace lockstep::data
