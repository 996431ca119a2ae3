#include "lockstep/data/inspect.hpp"

#include "lockstep/base/error.hpp"
#include "lockstep/base/file.hpp"
#include "lockstep/base/hash.hpp"
#include "lockstep/base/text.hpp"
#include "lockstep/data/dataset.hpp"

#include <algorithm>

#include "format.hpp"

namespace lockstep::data {

DataInfo describe(std::filesystem::path const& path) {
    Dataset const dataset({.files = path.string()});
    auto const file = h5::File::open(path);
    return {path,
            std::filesystem::file_size(path),
            file.text_attribute("/", "format") == format_name,
            file.exists("checksums/inputs"),
            dataset.samples(),
            dataset.sample_shape(),
            dataset.input_type(),
            dataset.class_names(),
            dataset.class_counts(),
            dataset.mean(),
            dataset.std()};
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

} // namespace

std::vector<DataDamage> verify(std::filesystem::path const& path) {
    auto const file = h5::File::open(path);
    auto const raw = File::open_read(path);
    auto const file_bytes = raw.size();
    std::vector<DataDamage> damage;
    std::vector<ByteRange> covered;
    std::vector<std::byte> block;
    for (std::string const name : {"inputs", "targets"}) {
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
    if (stored_checksums(raw, rest) != std::vector{checksum_outside(raw, covered)}) {
        damage.push_back({"what is not samples", 0, file_bytes - 1});
    }
    return damage;
}

} // namespace lockstep::data
