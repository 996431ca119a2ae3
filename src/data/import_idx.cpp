#include "lockstep/base/error.hpp"
#include "lockstep/base/random.hpp"
#include "lockstep/base/text.hpp"
#include "lockstep/data/import.hpp"
#include "lockstep/data/order.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "format.hpp"
#include "idx_file.hpp"
#include "writer.hpp"

namespace lockstep::data {

namespace {

constexpr std::int64_t samples_at_once = 4096;

struct IdxSet {
    h5::Shape sample_shape;
    std::vector<std::byte> images;
    std::vector<std::int64_t> labels;
};

IdxSet read_set(std::filesystem::path const& images_path,
                std::filesystem::path const& labels_path) {
    IdxFile images(images_path);
    IdxFile labels(labels_path);
    if (labels.shape().size() != 1 || labels.shape()[0] != images.shape()[0]) {
        labels.refuse(concat("it does not hold ", images.shape()[0], " labels, one for each of ",
                             images_path.string()));
    }
    IdxSet set;
    set.sample_shape.assign(images.shape().begin() + 1, images.shape().end());
    set.images.resize(h5::elements(images.shape()));
    images.read(set.images);
    images.require_end();
    std::vector<std::byte> raw(labels.shape()[0]);
    labels.read(raw);
    labels.require_end();
    for (auto const label : raw) {
        set.labels.push_back(std::to_integer<std::int64_t>(label));
    }
    return set;
}

/// Mean and standard deviation of all values / 255, from exact whole-number sums.
std::pair<double, double> moments_of(std::vector<std::byte> const& values) {
    std::uint64_t sum = 0;
    std::uint64_t squares = 0;
    for (auto const value : values) {
        auto const number = std::to_integer<std::uint64_t>(value);
        sum += number;
        squares += number * number;
    }
    auto const count = static_cast<double>(std::max<std::size_t>(values.size(), 1));
    double const mean = static_cast<double>(sum) / count / 255;
    double const variance = static_cast<double>(squares) / count / 255 / 255 - mean * mean;
    return {mean, variance > 0 ? std::sqrt(variance) : 1};
}

/// Takes a share of each class out of the set, by a fixed drawing; both keep the order of the file.
IdxSet split_off(IdxSet& set, double share) {
    std::vector<std::vector<std::size_t>> by_class(256);
    for (std::size_t i = 0; i < set.labels.size(); ++i) {
        by_class[static_cast<std::size_t>(set.labels[i])].push_back(i);
    }
    std::vector<bool> taken(set.labels.size(), false);
    for (std::size_t label = 0; label < by_class.size(); ++label) {
        auto const& members = by_class[label];
        auto const count = static_cast<std::int64_t>(members.size());
        Permutation const drawing(std::max<std::int64_t>(count, 1),
                                  random_key(0, Stream::order, {label}));
        auto const wanted = static_cast<std::int64_t>(static_cast<double>(count) * share);
        for (std::int64_t i = 0; i < wanted; ++i) {
            taken[members[static_cast<std::size_t>(drawing(i))]] = true;
        }
    }
    std::array<IdxSet, 2> parts;
    auto const values = static_cast<std::ptrdiff_t>(h5::elements(set.sample_shape));
    for (std::size_t i = 0; i < taken.size(); ++i) {
        auto& part = parts[taken[i] ? 1 : 0];
        auto const image = set.images.begin() + static_cast<std::ptrdiff_t>(i) * values;
        part.images.insert(part.images.end(), image, image + values);
        part.labels.push_back(set.labels[i]);
    }
    parts[0].sample_shape = set.sample_shape;
    parts[1].sample_shape = set.sample_shape;
    set = std::move(parts[0]);
    return std::move(parts[1]);
}

ImportedFile write_set(IdxSet const& set, SetForm form, std::filesystem::path const& path,
                       ImportProgress const& progress) {
    form.samples = static_cast<std::int64_t>(set.labels.size());
    form.sample_shape = set.sample_shape;
    form.input_type = h5::Type::u8;
    SetWriter writer(path, form);
    auto const sample = h5::elements(set.sample_shape);
    for (std::int64_t done = 0; done < form.samples;) {
        auto const count = std::min(samples_at_once, form.samples - done);
        writer.append_inputs(std::span(set.images)
                                 .subspan(static_cast<std::size_t>(done) * sample,
                                          static_cast<std::size_t>(count) * sample));
        done += count;
        progress(path, done, form.samples);
    }
    writer.write_targets(set.labels);
    return {path, form.samples, writer.commit()};
}

/// NAME or NAME.gz in a directory.
std::filesystem::path idx_path(std::filesystem::path const& directory, std::string const& name) {
    auto const plain = directory / name;
    return std::filesystem::exists(plain) ? plain : std::filesystem::path(plain.string() + ".gz");
}

SetForm form_of(IdxImport const& options, IdxSet const& set, std::filesystem::path const& labels) {
    auto const [mean, deviation] = moments_of(set.images);
    SetForm form;
    form.class_names = complete_names(options.classes, set.labels, labels);
    form.mean = {mean};
    form.std = {deviation};
    return form;
}

} // namespace

std::vector<ImportedFile> import_idx(IdxImport const& options, ImportProgress const& progress) {
    if (!(options.validation_share >= 0 && options.validation_share < 1)) {
        throw Error(ExitCode::usage,
                    {concat("validation share ", options.validation_share),
                     "it is a part of the training images", "Give at least 0 and less than 1"});
    }
    auto const pair = split(options.source.string(), ',');
    if (pair.size() == 2) {
        auto const set = read_set(pair[0], pair[1]);
        return {write_set(set, form_of(options, set, pair[1]), options.out, progress)};
    }
    auto const& from = options.source;
    auto const train_labels = idx_path(from, "train-labels-idx1-ubyte");
    auto const test_labels = idx_path(from, "t10k-labels-idx1-ubyte");
    auto train = read_set(idx_path(from, "train-images-idx3-ubyte"), train_labels);
    auto const test = read_set(idx_path(from, "t10k-images-idx3-ubyte"), test_labels);
    auto const validation = split_off(train, options.validation_share);
    // The other sets are seen as the training set is: its mean, its classes.
    auto const form = form_of(options, train, train_labels);
    complete_names(form.class_names, test.labels, test_labels); // throws for a label without one
    if (test.sample_shape != train.sample_shape) {
        throw Error(ExitCode::data, {from.string(), "training and test images differ in shape",
                                     "Fetch the files of one data set"});
    }
    std::vector<ImportedFile> files{write_set(train, form, options.out / "train.h5", progress)};
    if (!validation.labels.empty()) {
        files.push_back(write_set(validation, form, options.out / "validation.h5", progress));
    }
    files.push_back(write_set(test, form, options.out / "test.h5", progress));
    return files;
}

} // namespace lockstep::data
