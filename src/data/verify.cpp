#include "data/verify.hpp"

#include "base/file.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "data/checksums.hpp"
#include "data/format.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <set>

namespace lockstep::data {

bool has_checksums(std::filesystem::path const& path) {
    return h5::File::open(path).exists("checksums");
}

namespace {

/// A dataset's bytes, once it is sure that it and its checksums fit the file.
ByteRange bytes_of(h5::File const& file, std::string const& name, std::uint64_t file_bytes) {
    if (!file.exists(name)) {
        throw Error(ExitCode::data, {concat(file.path().string(), " cannot be verified"),
                                     concat("it has no dataset named ", name),
                                     "Name a file that lockstep data import has made"});
    }
    return bytes_in_file(file, file.info(name), file_bytes);
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

std::vector<std::uint64_t> stored_checksums(File const& raw, ByteRange const& range) {
    std::vector<std::uint64_t> sums(range.count / sizeof(std::uint64_t));
    raw.read_at(range.first, std::as_writable_bytes(std::span(sums)));
    return sums;
}

} // namespace

std::vector<std::string> datasets_added_to(std::filesystem::path const& path) {
    return added_datasets(h5::File::open(path));
}

std::vector<DataDamage> verify(std::filesystem::path const& path, VerifiedPart part) {
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
                        {path.string(),
                         concat("the number of checksums does not fit the size of dataset ", name),
                         "Import the data again, because the file is damaged"});
        }
        auto const end = sums.size() * (part.which + 1) / part.parts;
        for (auto i = sums.size() * part.which / part.parts; i < end; ++i) {
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
    if (part.which == 0 && added_datasets(file).empty() &&
        stored_checksums(raw, rest) != std::vector{checksum_outside(raw, covered)}) {
        damage.push_back({"the part outside the samples", 0, file_bytes - 1});
    }
    return damage;
}

} // namespace lockstep::data
