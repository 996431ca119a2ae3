#include "format.hpp"

#include "lockstep/base/error.hpp"
#include "lockstep/base/hash.hpp"
#include "lockstep/base/text.hpp"

#include <algorithm>

namespace lockstep::data {

namespace {

[[noreturn]] void refuse(std::filesystem::path const& path, std::string const& why,
                         std::string const& next) {
    throw Error(ExitCode::data, {path.string(), why, next});
}

h5::DatasetInfo readable_dataset(h5::File const& file, std::string const& name) {
    if (!file.exists(name)) {
        std::vector<std::string> there;
        for (auto const& info : file.datasets()) {
            there.push_back(info.path);
        }
        refuse(file.path(), concat("it has no dataset ", name, "; it has ", joined(there, ", ")),
               "Set data.inputs and data.targets to the names inside the file");
    }
    auto info = file.info(name);
    if (!info.type || info.shape.empty()) {
        refuse(file.path(), concat("dataset ", name, " does not hold plain numbers by sample"),
               "Convert it with lockstep data import hdf5");
    }
    return info;
}

/// Mean or standard deviation as the file gives it: one for all, or one for each channel.
std::vector<double> moments(h5::File const& file, std::string const& name,
                            h5::Shape const& sample_shape) {
    auto const values = file.number_attribute("/", name).value_or(std::vector<double>{});
    bool const by_channel = !sample_shape.empty() && values.size() == sample_shape.front();
    if (values.size() > 1 && !by_channel) {
        refuse(file.path(), concat("attribute ", name, " has ", values.size(), " values"),
               "It must have one value, or one for each channel");
    }
    return values;
}

} // namespace

std::vector<std::int64_t> read_targets(h5::File const& file, std::string const& name) {
    auto const info = readable_dataset(file, name);
    std::vector<std::int64_t> targets(h5::elements(info.shape));
    bool const whole =
        *info.type != h5::Type::f16 && *info.type != h5::Type::f32 && *info.type != h5::Type::f64;
    if (info.shape.size() != 1 || !whole) {
        refuse(file.path(), concat("dataset ", name, " does not hold one whole number a sample"),
               "Store class labels as [samples] integers");
    }
    if (!targets.empty()) {
        file.read(name, h5::Type::i64, targets.data()); // HDF5 converts
    }
    return targets;
}

OpenedSamples open_samples(std::filesystem::path const& path, FieldNames const& names) {
    auto const file = h5::File::open(path);
    auto const info = readable_dataset(file, names.inputs);
    if (!info.contiguous || *info.type == h5::Type::f16 || *info.type == h5::Type::i64 ||
        *info.type == h5::Type::u64) {
        refuse(path,
               concat("dataset ", names.inputs, " is ",
                      info.contiguous ? "of type " + h5::name_of(*info.type)
                                      : std::string("chunked or compressed")),
               concat("Convert it: lockstep data import hdf5 ", path.string(), " OUT.h5"));
    }
    OpenedSamples opened;
    opened.sample_shape.assign(info.shape.begin() + 1, info.shape.end());
    opened.input_type = *info.type;
    opened.inputs_at = *info.offset;
    auto const bytes = h5::elements(info.shape) * h5::size_of(*info.type);
    auto const size = std::filesystem::file_size(path);
    if (opened.inputs_at + bytes > size) {
        refuse(path,
               concat("it ends at byte ", size, ", its samples at byte ", opened.inputs_at + bytes),
               "The file was cut short: make or copy it again");
    }
    opened.targets = read_targets(file, names.targets);
    if (opened.targets.size() != info.shape.front()) {
        refuse(path, concat(info.shape.front(), " inputs but ", opened.targets.size(), " targets"),
               "Both need one entry a sample");
    }
    opened.class_names = file.texts_attribute("/", "classes").value_or(std::vector<std::string>{});
    opened.mean = moments(file, "mean", opened.sample_shape);
    opened.std = moments(file, "std", opened.sample_shape);
    if (opened.mean.size() != opened.std.size() ||
        std::any_of(opened.std.begin(), opened.std.end(),
                    [](double value) { return value <= 0; })) {
        refuse(path, "attributes mean and std do not fit each other", "Import the data again");
    }
    auto identity = concat(h5::name_of(*info.type), " ", opened.targets.size());
    for (auto const extent : opened.sample_shape) {
        identity += concat(" ", extent);
    }
    Hasher hasher;
    hasher.add(std::as_bytes(std::span(identity)));
    hasher.add(std::as_bytes(std::span(opened.targets)));
    if (file.exists("checksums/" + names.inputs)) {
        std::vector<std::uint64_t> checksums(
            h5::elements(file.info("checksums/" + names.inputs).shape));
        file.read("checksums/" + names.inputs, h5::Type::u64, checksums.data());
        hasher.add(std::as_bytes(std::span(checksums)));
    }
    opened.fingerprint = hasher.digest();
    return opened;
}

std::vector<std::uint64_t> block_checksums(std::span<std::byte const> bytes) {
    std::vector<std::uint64_t> sums;
    while (!bytes.empty()) {
        auto const block = bytes.first(std::min<std::size_t>(checksum_block, bytes.size()));
        sums.push_back(hash64(block));
        bytes = bytes.subspan(block.size());
    }
    return sums;
}

} // namespace lockstep::data
