#include "format.hpp"

#include "lockstep/base/error.hpp"
#include "lockstep/base/hash.hpp"
#include "lockstep/base/text.hpp"

#include <algorithm>
#include <cmath>

#include "convert.hpp"

namespace lockstep::data {

namespace {

[[noreturn]] void refuse(std::filesystem::path const& path, std::string const& why,
                         std::string const& next) {
    throw Error(ExitCode::data, {path.string(), why, next});
}

/// Mean or standard deviation as the file gives it: one for all, or one for each channel.
std::vector<double> moment(h5::File const& file, std::string const& name,
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

h5::DatasetInfo readable_dataset(h5::File const& file, std::string const& name, Entries entries) {
    if (!file.exists(name)) {
        std::vector<std::string> there;
        for (auto const& info : file.datasets()) {
            there.push_back(info.path);
        }
        refuse(file.path(), concat("it has no dataset ", name, "; it has ", joined(there, ", ")),
               "Name those inside the file: data.inputs and data.targets in a deck, --inputs and "
               "--targets at an import");
    }
    auto info = file.info(name);
    if (!info.readable_as || (info.shape.empty() && entries == Entries::samples)) {
        refuse(file.path(), concat("dataset ", name, " does not hold plain numbers by sample"),
               "Store it as whole or floating-point numbers, samples first");
    }
    if (h5::elements(info.shape) == 0) {
        refuse(file.path(), concat("dataset ", name, " holds no samples"), "Name another file");
    }
    return info;
}

Moments read_moments(h5::File const& file, h5::Shape const& sample_shape) {
    Moments moments{moment(file, "mean", sample_shape), moment(file, "std", sample_shape)};
    auto const& [mean, std] = moments;
    bool const finite =
        std::all_of(mean.begin(), mean.end(), [](double value) { return std::isfinite(value); });
    bool const positive = std::all_of(
        std.begin(), std.end(), [](double value) { return std::isfinite(value) && value > 0; });
    if (mean.size() != std.size() || !finite || !positive) {
        refuse(file.path(), "attributes mean and std do not fit each other",
               "Both must be there or none, the same number of them, and std above zero");
    }
    return moments;
}

std::optional<ByteRange> bytes_in_file(h5::DatasetInfo const& info, std::uint64_t file_bytes) {
    if (!info.type || !info.offset || *info.offset > file_bytes) {
        return std::nullopt;
    }
    // Extent by extent, since a damaged shape can be of any size.
    auto const most = file_bytes - *info.offset;
    std::uint64_t bytes = h5::size_of(*info.type);
    for (auto const extent : info.shape) {
        if (extent > 0 && bytes > most / extent) {
            return std::nullopt;
        }
        bytes *= extent;
    }
    return ByteRange{*info.offset, bytes};
}

std::vector<std::int64_t> read_targets(h5::File const& file, std::string const& name,
                                       std::uint64_t samples) {
    auto const info = readable_dataset(file, name);
    auto const type = *info.readable_as;
    if (info.shape.size() != 1 || !is_whole(type)) {
        refuse(file.path(), concat("dataset ", name, " does not hold one whole number a sample"),
               "Store classes or groups as [samples] integers");
    }
    if (info.shape.front() != samples) {
        refuse(file.path(), concat(samples, " inputs but ", info.shape.front(), " of ", name),
               "Both need one entry a sample");
    }
    std::vector<std::int64_t> targets(samples);
    file.read(name, h5::Type::i64, targets); // HDF5 converts
    return targets;
}

std::vector<std::string> complete_names(std::vector<std::string> given,
                                        std::span<std::int64_t const> targets,
                                        std::filesystem::path const& path, ExitCode at_fault) {
    auto const [least, largest] = std::minmax_element(targets.begin(), targets.end());
    if (least != targets.end() && (*least < 0 || *largest >= most_classes)) {
        auto const wrong = *least < 0 ? least : largest;
        refuse(path, concat("label ", *wrong, " of sample ", wrong - targets.begin()),
               concat("Labels must be 0 to ", most_classes - 1));
    }
    auto const needed = least == targets.end() ? 0 : static_cast<std::size_t>(*largest) + 1;
    if (!given.empty() && given.size() < needed) {
        throw Error(at_fault, {concat(given.size(), " class names"),
                               concat("the labels of ", path.string(), " go up to ", needed - 1),
                               concat("Name ", needed, " classes")});
    }
    while (given.size() < needed) {
        given.push_back(std::to_string(given.size()));
    }
    return given;
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

std::uint64_t checksum_outside(File const& file, std::vector<ByteRange> ranges) {
    std::sort(ranges.begin(), ranges.end(),
              [](ByteRange const& a, ByteRange const& b) { return a.first < b.first; });
    ranges.push_back({file.size(), 0});
    Hasher hasher;
    std::vector<std::byte> buffer;
    std::uint64_t at = 0;
    for (auto const& range : ranges) {
        while (at < range.first) {
            buffer.resize(std::min(checksum_block, range.first - at));
            file.read_at(at, buffer);
            hasher.add(buffer);
            at += buffer.size();
        }
        at = std::max(at, range.first + range.count);
    }
    return hasher.digest();
}

} // namespace lockstep::data
