#include "lockstep/data/dataset.hpp"

#include "base/hash.hpp"
#include "base/list.hpp"
#include "base/text.hpp"
#include "data/checksums.hpp"
#include "data/class_names.hpp"
#include "data/convert.hpp"
#include "data/format.hpp"
#include "data/order.hpp"
#include "data/weights.hpp"
#include "h5/element_type.hpp"
#include "h5/file.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <optional>

#include "dataset_parts.hpp"

namespace lockstep::data {

namespace {

/// The tokens of a sample, and the ones that follow each of them.
std::vector<Field> sequence_fields(DatasetOptions const& options, bool are_inputs) {
    auto const names = list_texts(options.inputs);
    if (names.size() != 1 || options.sequence < 2 || options.sample_per_file) {
        throw Error(ExitCode::usage,
                    {concat("data.sequence = ", options.sequence),
                     "a sample must have at least 2 consecutive tokens of one dataset",
                     "Set data.sequence to 2 or more, name one dataset in data.inputs, and leave "
                     "out data.sample-per-file"});
    }
    std::vector<Field> fields;
    fields.emplace_back(names.front(), are_inputs, Window{options.sequence, are_inputs ? 0 : 1});
    if (!are_inputs && !options.mask.empty()) {
        fields.emplace_back(options.mask, are_inputs, Window{options.sequence, 1, false});
    }
    return fields;
}

/// It marks each of the tokens.
void require_mask(h5::File const& file, std::string const& mask, std::string const& tokens) {
    auto const found = readable_dataset(file, mask);
    auto const wanted = readable_dataset(file, tokens);
    if (found.readable_as != h5::Type::u8 || found.shape != wanted.shape) {
        throw Error(
            ExitCode::data,
            {concat("dataset ", mask, " of ", file.path().string()),
             concat("data.mask needs u8 numbers in the tokens' shape ",
                    h5::shape_text(wanted.shape), ", but this dataset has type ",
                    h5::name_of(*found.readable_as), " and shape ", h5::shape_text(found.shape)),
             "Import the texts with lockstep data import text --prompt KEY, or remove data.mask"});
    }
}

std::vector<Field> fields_named(DatasetOptions const& options, bool are_inputs) {
    if (options.sequence != 0) {
        return sequence_fields(options, are_inputs);
    }
    if (!options.mask.empty()) {
        throw Error(ExitCode::usage,
                    {concat("data.mask = ", options.mask),
                     "a mask marks tokens, but without data.sequence, samples have no tokens",
                     "Set data.sequence, or remove data.mask"});
    }
    std::vector<Field> fields;
    auto const& names = are_inputs ? options.inputs : options.targets;
    for (auto const& name : list_texts(names)) {
        fields.emplace_back(name, are_inputs);
    }
    if (fields.empty()) {
        throw Error(ExitCode::usage, {are_inputs ? "data.inputs is empty" : "data.targets is empty",
                                      "a sample needs at least one dataset",
                                      "Name datasets inside the files, separated by commas"});
    }
    return fields;
}

/// Whether several means are those of the last dimension of a sample. Where they may be those of
/// the first, too, it is what samples mean: named columns, channels as the model has them, or rows
/// of features.
bool are_of_last(Facts const& facts, FieldInfo const& input, bool channels_last) {
    auto const& shape = input.shape;
    bool const last =
        !facts.columns.empty() || channels_last || (shape.size() == 2 && !input.ragged);
    return facts.mean.size() > 1 && axis_of_channels(facts.mean.size(), shape, last) > 0;
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
                    {path.string(),
                     concat("its ", what, " differs from that of the previous files"),
                     "Name only files that belong to the same data set"});
    }
}

} // namespace

std::vector<std::filesystem::path> named_files(DatasetOptions const& options) {
    auto paths = expand_files(options.files);
    if (paths.empty()) {
        throw Error(ExitCode::usage, {"no data file is named", "a data set needs at least one file",
                                      "Set data.train, data.validation or data.test, whichever is "
                                      "needed"});
    }
    return paths;
}

Dataset::Dataset(DatasetOptions const& options, OfNoFile) : parts_(std::make_shared<Parts>()) {
    if (!options.weights.empty()) {
        weights_ = std::make_shared<std::vector<double>>();
        parts_->weights = options.weights;
    }
    parts_->mask = options.mask;
    parts_->labels = options.labels;
    parts_->channels_last = options.channels_last;
    parts_->source.sample_per_file = options.sample_per_file;
    parts_->inputs = fields_named(options, true);
    if (!options.inputs_alone) {
        parts_->targets = fields_named(options, false);
    }
}

Dataset::Dataset(DatasetOptions const& options) : Dataset(options, OfNoFile{}) {
    for (auto const& path : named_files(options)) {
        open_file(path, Look::all);
    }
    complete();
}

Dataset::Dataset(Dataset&& other) noexcept = default;
Dataset::~Dataset() = default;

void Dataset::open_file(std::filesystem::path const& path, Look look) {
    auto const file = h5::File::open(path);
    auto& source = parts_->source;
    auto const number = source.named.size();
    source.named.push_back(source.files.add(path));
    std::optional<std::int64_t> samples;
    auto const add = [&](Field& field) {
        auto const count = field.add(file, source);
        if (count != samples.value_or(count)) {
            throw Error(ExitCode::data, {path.string(),
                                         concat("it has ", amount_of(*samples, "sample"),
                                                " in dataset ", parts_->inputs.front().info().name,
                                                ", but ", count, " in dataset ", field.info().name),
                                         "Give each dataset one entry per sample"});
        }
        samples = count;
    };
    std::for_each(parts_->inputs.begin(), parts_->inputs.end(), add);
    auto const& tokens = parts_->inputs.front().info();
    if (!parts_->mask.empty()) {
        require_mask(file, parts_->mask, tokens.name);
    } else if (number == 0 && tokens.vocabulary > 0) {
        parts_->leaves_mask = file.exists(learnt_name);
    }
    std::for_each(parts_->targets.begin(), parts_->targets.end(), add);
    require_fitting(file);
    source.first_of_file.push_back(source.samples);
    source.samples += *samples;
    if (look == Look::all) {
        look_through(number, file);
    }
}

/// The first file decides.
void Dataset::require_fitting(h5::File const& file) {
    auto const& path = file.path();
    bool const first = parts_->source.named.size() == 1;
    auto facts =
        read_facts(file, parts_->inputs.front().info().shape, first || !facts_.token_bytes.empty());
    require_scales(path, parts_->inputs.front().info().type, facts.mean, facts.std);
    if (first) {
        require_names(facts.classes, concat(path.string(), ": "));
        facts.channels_last =
            are_of_last(facts, parts_->inputs.front().info(), parts_->channels_last);
        for (auto& field : parts_->inputs) {
            bool const scaled = &field == &parts_->inputs.front();
            field.prepare(scaled ? facts.mean : std::vector<double>{},
                          scaled ? facts.std : std::vector<double>{}, facts.channels_last);
            facts.inputs.push_back(field.info());
        }
        for (auto& field : parts_->targets) {
            field.prepare({}, {}, false);
            facts.targets.push_back(field.info());
        }
        facts_ = std::move(facts);
        names_ = facts_.classes;
        return;
    }
    require_same(facts.mean == facts_.mean && facts.std == facts_.std, path, "mean or std");
    require_same(facts.token_bytes == facts_.token_bytes, path, std::string(token_bytes_name));
    require_same(facts.tokenizer == facts_.tokenizer, path, std::string(tokenizer_name));
    require_same(facts.classes == facts_.classes, path, "list of classes");
    require_same(facts.columns == facts_.columns, path, concat("list of ", columns_name));
    require_same(facts.sample_rate == facts_.sample_rate, path, "sample rate");
}

/// Reads labels and weights, and hashes what is known of the file.
void Dataset::look_through(std::size_t number, h5::File const& file) {
    auto const& source = parts_->source;
    auto const samples = source.end_of_file(number) - source.first_of_file[number];
    Hasher hasher;
    auto const identity = identity_of(inputs().front(), samples);
    hasher.add(std::as_bytes(std::span(identity)));
    look_through_labels(number, hasher);
    if (weights_) {
        auto const own = read_weights(file, parts_->weights, samples);
        hasher.add(std::as_bytes(std::span(own)));
        weights_->insert(weights_->end(), own.begin(), own.end());
    }
    hasher.add(std::as_bytes(std::span(mean())));
    hasher.add(std::as_bytes(std::span(std())));
    add_checksums(hasher, file, inputs().front());
    for (auto const* fields : {&inputs(), &targets()}) {
        for (auto const& field : *fields) {
            if (&field != &inputs().front() && !(&field == targets().data() && field.is_label())) {
                auto const other = identity_of(field, samples);
                hasher.add(std::as_bytes(std::span(other)));
                add_checksums(hasher, file, field);
            }
        }
    }
    parts_->digests.push_back(hasher.digest());
}

/// What all files together say.
void Dataset::complete() {
    if (weights_) {
        require_some_weight(*weights_, parts_->weights, parts_->source.path_of(0));
    }
    if (has_numbers_) {
        counts_.clear();
    }
    name_classes();
    facts_.class_count = classes();
    for (auto const digest : parts_->digests) {
        fingerprint_ = hash64(concat(fingerprint_, " ", digest));
    }
}

void Dataset::scale_as(std::vector<double> mean, std::vector<double> std, bool last) {
    auto const& shape = sample_shape();
    if (!fit_channels(mean.size(), shape)) {
        auto const channels = shape.empty() ? 1 : shape.front();
        throw Error(ExitCode::data, {parts_->source.path_of(0).string(),
                                     concat("its samples have ", amount_of(channels, "channel"),
                                            ", but the training set has mean and std for ",
                                            amount_of(mean.size(), "channel")),
                                     "Import all sets in the same way"});
    }
    facts_.channels_last = mean.size() > 1 && axis_of_channels(mean.size(), shape, last) > 0;
    parts_->inputs.front().prepare(mean, std, last);
    facts_.mean = std::move(mean);
    facts_.std = std::move(std);
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

bool Dataset::is_masked() const {
    return !parts_->mask.empty();
}

std::vector<std::string> Dataset::remarks() const {
    constexpr std::size_t max = 8; // of files; of more nobody reads
    std::vector<std::string> remarks;
    std::vector<std::string> attributes;
    auto const& source = parts_->source;
    for (auto const* const fields : {&parts_->inputs, &parts_->targets}) {
        for (auto const& field : *fields) {
            for (std::size_t file = 0; file < source.named.size(); ++file) {
                for (auto const* const column : field.columns_of(file)) {
                    if (column->is_unwritten() && remarks.size() < max) {
                        remarks.push_back(unwritten_text(column->name(), source.path_of(file)));
                    }
                }
            }
            if (!field.unapplied().empty()) {
                attributes.push_back(concat("dataset ", field.info().name, " has ",
                                            joined(field.unapplied(), ", ")));
            }
        }
    }
    if (parts_->leaves_mask) {
        remarks.push_back(concat(
            "warning: dataset ", learnt_name, " of ", source.path_of(0).string(),
            " is not used. To learn only the tokens that it marks, set data.mask = ", learnt_name));
    }
    if (auto const text = undivided_text(input_type(), mean(), source.path_of(0).string());
        !text.empty() &&
        read_moments(h5::File::open(source.path_of(0)), sample_shape()).first == mean()) {
        remarks.push_back(text); // not of values that other files or a model give
    }
    if (!attributes.empty()) {
        remarks.push_back(concat("warning: attributes in ", source.path_of(0).string(),
                                 " are not applied (", joined(attributes, "; "),
                                 "); values are used as they are stored"));
    }
    return remarks;
}

Blocks Dataset::blocks() const {
    constexpr std::int64_t window_bytes = std::int64_t{8} << 20;
    constexpr std::int64_t block_bytes = std::int64_t{1} << 20;
    auto const& input = inputs().front();
    auto const sample_bytes = std::max<std::int64_t>(
        static_cast<std::int64_t>(h5::elements(input.shape) * h5::size_of(input.type)), 1);
    auto const together = parts_->inputs.front().samples_together();
    auto const block =
        together > 1 ? together : std::max<std::int64_t>(block_bytes / sample_bytes, 1);
    return {block, std::max<std::int64_t>(window_bytes / (block * sample_bytes), 4)};
}

std::pair<std::filesystem::path, std::int64_t> Dataset::place_of(std::int64_t sample) const {
    auto const number = number_in_files(sample);
    auto const file = parts_->source.file_of(number);
    return {parts_->source.path_of(file), number - parts_->source.first_of_file[file]};
}

Viewers Dataset::viewers() const {
    return parts_->viewers;
}

std::uint64_t Dataset::chunks_decoded() const {
    return parts_->source.cache.made();
}

void Dataset::read(Batch& batch, Scratch& scratch) const {
    batch.first_target = inputs().size();
    batch.fields.resize(inputs().size() + targets().size());
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

void Dataset::read_targets(std::span<std::int64_t const> indices, std::span<float> into) const {
    Scratch scratch;
    std::vector<std::int64_t> buffer;
    auto const samples = numbers_in_files(indices, buffer);
    parts_->targets.front().read_reals(parts_->source, samples, into, scratch);
}

std::vector<double> Dataset::read_stored(std::size_t input,
                                         std::span<std::int64_t const> indices) const {
    Scratch scratch;
    std::vector<std::int64_t> buffer;
    auto const samples = numbers_in_files(indices, buffer);
    return parts_->inputs.at(input).read_stored(parts_->source, samples, scratch);
}

} // namespace lockstep::data
