#include "data/checksums.hpp"

#include "base/hash.hpp"
#include "base/text.hpp"
#include "data/format.hpp"
#include "h5/element_type.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <iterator>
#include <limits>

namespace lockstep::data {

std::vector<std::uint64_t> block_checksums(std::span<std::byte const> bytes) {
    std::vector<std::uint64_t> sums;
    while (!bytes.empty()) {
        auto const block = bytes.first(std::min<std::size_t>(checksum_block, bytes.size()));
        sums.push_back(hash64(block));
        bytes = bytes.subspan(block.size());
    }
    return sums;
}

namespace {

constexpr std::string_view checksum_prefix = "checksums/";

/// Whether it is a file of ours that has checksums: compressed ones have those of their chunks.
bool has_block_checksums(h5::File const& file) {
    if (file.text_attribute("/", "format") != format_name || !file.exists("checksums")) {
        return false;
    }
    if (!file.exists("checksums/rest")) {
        throw Error(ExitCode::data,
                    {concat("the checksums of ", file.path().string(), " cannot be read"),
                     "the file is damaged",
                     "Copy the file back from a backup, or import the data again"});
    }
    return true;
}

/// The names of what each import writes; others may be added later.
void require_checksum(h5::File const& file, std::string const& name) {
    if ((name == "inputs" || name == "targets") && !file.exists(concat(checksum_prefix, name))) {
        throw Error(ExitCode::data, {concat(file.path().string(), " cannot be verified"),
                                     concat("dataset ", name,
                                            " has no checksums, although those of other "
                                            "datasets are there: the file has changed since the "
                                            "import"),
                                     "Copy the file back from a backup, or import the data again"});
    }
}

ByteRange range_of(h5::File const& file, std::string const& name, std::uint64_t file_bytes) {
    if (!file.exists(name)) {
        throw Error(ExitCode::data,
                    {concat(file.path().string(), " has no dataset named ", name),
                     "the file is damaged, or another program has rewritten the file",
                     "Import the data again"});
    }
    auto const info = file.info(name);
    return h5::elements(info.shape) == 0 ? ByteRange{} : bytes_in_file(file, info, file_bytes);
}

} // namespace

ByteRange checksums_in(h5::File const& file, std::string name, std::uint64_t bytes) {
    name = name.starts_with('/') ? name.substr(1) : name;
    if (!has_block_checksums(file)) {
        return {};
    }
    require_checksum(file, name);
    name = concat(checksum_prefix, name);
    if (!file.exists(name)) {
        return {};
    }
    auto const range = range_of(file, name, std::filesystem::file_size(file.path()));
    if (range.count != checksum_blocks(bytes) * sizeof(std::uint64_t)) {
        throw Error(ExitCode::data, {file.path().string(),
                                     concat("the number of checksums in ", name,
                                            " does not fit the size of the dataset"),
                                     "Import the data again, because the file is damaged"});
    }
    return range;
}

std::optional<std::vector<ByteRange>> covered_ranges(h5::File const& file) {
    if (!has_block_checksums(file)) {
        return std::nullopt;
    }
    auto const bytes = std::filesystem::file_size(file.path());
    std::vector<ByteRange> covered;
    for (auto const& name : file.names()) {
        if (name.starts_with(checksum_prefix) && name != "checksums/rest") {
            covered.push_back(range_of(file, name.substr(checksum_prefix.size()), bytes));
        }
    }
    covered.push_back(range_of(file, "checksums/rest", bytes));
    return covered;
}

std::vector<std::string> added_datasets(h5::File const& file) {
    if (!has_block_checksums(file)) {
        return {};
    }
    auto const names = file.names();
    std::vector<std::string> added;
    std::ranges::copy_if(names, std::back_inserter(added), [&](std::string const& name) {
        auto const checked = name.ends_with("_offsets") // which are under the checksum of the rest
                                 ? name.substr(0, name.rfind('_'))
                                 : name;
        return !name.starts_with(checksum_prefix) && name != token_bytes_name &&
               name != tokenizer_name &&
               !std::ranges::binary_search(names, concat(checksum_prefix, checked));
    });
    std::ranges::for_each(added, [&](std::string const& name) { require_checksum(file, name); });
    return added;
}

void require_rest(File const& file, std::vector<ByteRange> const& covered) {
    std::uint64_t stored = 0;
    file.read_at(covered.back().first, std::as_writable_bytes(std::span(&stored, 1)));
    if (checksum_outside(file, covered) != stored) {
        throw Error(ExitCode::data, {concat(file.path().string(), " is damaged"),
                                     "the checksum of its names, shapes and attributes is wrong, "
                                     "so they have changed since the import",
                                     "Copy the file back from a backup, or import the data again"});
    }
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
