#include "checkpoint/checksum_header.hpp"

#include "base/hash.hpp"
#include "base/text.hpp"
#include "checkpoint/content.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <string_view>

namespace lockstep::checkpoint {

namespace {

static_assert(std::endian::native == std::endian::little,
              "the checksum header is stored little-endian");

constexpr std::string_view magic = "LOCKSTEPSEAL";
constexpr std::uint32_t version = 1;
constexpr std::uint64_t min_block = std::uint64_t{64} << 10;
constexpr std::uint64_t head_bytes = 40; // magic, version, length, block size, blocks
constexpr std::uint64_t read_bytes = std::uint64_t{256} << 10; // stays in a core's own cache

static_assert(head_bytes + 8 * ChecksumHeader::max_blocks + 8 <= checksum_header_bytes);

std::uint64_t blocks_of(std::uint64_t length, std::uint64_t block_bytes) {
    auto const recorded = length - std::min(length, checksum_header_bytes);
    return (recorded + block_bytes - 1) / block_bytes;
}

template <class T>
void put(std::span<std::byte> bytes, std::uint64_t offset, T value) {
    std::memcpy(bytes.subspan(offset, sizeof value).data(), &value, sizeof value);
}

template <class T>
T get(std::span<std::byte const> bytes, std::uint64_t offset) {
    T value{};
    std::memcpy(&value, bytes.subspan(offset, sizeof value).data(), sizeof value);
    return value;
}

Error damaged(std::filesystem::path const& path, std::string const& why) {
    return {
        ExitCode::data,
        {concat("cannot verify ", path.string()), why,
         "Use an older checkpoint, copy the file back from a backup, or create the file again"}};
}

} // namespace

ChecksumHeader ChecksumHeader::for_length(std::uint64_t length) {
    ChecksumHeader checksums{length, min_block, {}};
    while (blocks_of(length, checksums.block_bytes) > max_blocks) {
        checksums.block_bytes *= 2;
    }
    checksums.hashes.resize(blocks_of(length, checksums.block_bytes));
    return checksums;
}

std::uint64_t ChecksumHeader::first_byte(std::uint64_t block) const {
    return checksum_header_bytes + block * block_bytes;
}

std::uint64_t ChecksumHeader::last_byte(std::uint64_t block) const {
    return std::min(first_byte(block + 1), length) - 1;
}

std::array<std::byte, checksum_header_bytes> ChecksumHeader::encoded() const {
    std::array<std::byte, checksum_header_bytes> bytes{};
    std::memcpy(bytes.data(), magic.data(), magic.size());
    put(bytes, magic.size(), version);
    put(bytes, 16, length);
    put(bytes, 24, block_bytes);
    put(bytes, 32, static_cast<std::uint64_t>(hashes.size()));
    for (std::uint64_t block = 0; block < hashes.size(); ++block) {
        put(bytes, head_bytes + 8 * block, hashes[block]);
    }
    auto const used = head_bytes + 8 * hashes.size();
    put(bytes, used, hash64(std::span(bytes).first(used)));
    return bytes;
}

ChecksumHeader ChecksumHeader::decoded(std::span<std::byte const, checksum_header_bytes> bytes,
                                       std::filesystem::path const& path) {
    if (std::memcmp(bytes.data(), magic.data(), magic.size()) != 0) {
        throw damaged(path, "it does not begin with a checksum header, so it was never "
                            "finished, is damaged, or is not a file of this program");
    }
    if (auto const found = get<std::uint32_t>(bytes, magic.size()); found != version) {
        throw damaged(path,
                      concat("its format version is ", found, ", not ", version,
                             ", so it is damaged, or a newer version of this program wrote it"));
    }
    auto const blocks = get<std::uint64_t>(bytes, 32);
    auto const used = head_bytes + 8 * std::min(blocks, max_blocks);
    bool const blank = std::all_of(bytes.begin() + static_cast<std::ptrdiff_t>(used + 8),
                                   bytes.end(), [](std::byte b) { return b == std::byte{0}; });
    if (blocks > max_blocks || !blank ||
        get<std::uint64_t>(bytes, used) != hash64(bytes.first(used))) {
        throw damaged(path, concat("bytes 0 to ", checksum_header_bytes - 1,
                                   ", the checksum header itself, are damaged"));
    }
    auto checksums = for_length(get<std::uint64_t>(bytes, 16));
    if (checksums.block_bytes != get<std::uint64_t>(bytes, 24) ||
        checksums.hashes.size() != blocks) {
        throw damaged(
            path, "the number or size of its checksum blocks does not match the recorded length");
    }
    for (std::uint64_t block = 0; block < blocks; ++block) {
        checksums.hashes[block] = get<std::uint64_t>(bytes, head_bytes + 8 * block);
    }
    return checksums;
}

ChecksumHeader read_checksum_header(File const& file) {
    std::array<std::byte, checksum_header_bytes> bytes{};
    file.read_at(0, bytes);
    return ChecksumHeader::decoded(bytes, file.path());
}

void require_checksum_header(File const& file) {
    auto const checksums = read_checksum_header(file);
    if (auto const found = file.size(); found != checksums.length) {
        throw Error(ExitCode::data, {concat(file.path().string(), " is damaged"),
                                     concat("the file had ", checksums.length,
                                            " bytes when it was written, and now has ", found),
                                     remedy_for(content_of(file))});
    }
}

std::uint64_t hash_of_block(File const& file, ChecksumHeader const& checksums,
                            std::uint64_t block) {
    Hasher hasher;
    std::vector<std::byte> buffer(std::min(checksums.block_bytes, read_bytes));
    auto const end = checksums.last_byte(block) + 1;
    for (auto at = checksums.first_byte(block); at < end; at += buffer.size()) {
        auto const part = std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), end - at));
        file.read_at(at, part);
        hasher.add(part);
    }
    return hasher.digest();
}

std::uint64_t read_back(File const& file, std::uint64_t offset, std::span<std::byte const> bytes,
                        ChecksumHeader& checksums, std::vector<std::uint64_t>& known) {
    std::vector<std::byte> buffer(std::min<std::uint64_t>(bytes.size(), read_bytes));
    std::optional<Hasher> hasher; // of a block that begins and ends here
    for (std::uint64_t at = 0; at < bytes.size();) {
        auto const block = (offset + at - checksum_header_bytes) / checksums.block_bytes;
        auto const end = std::min(checksums.last_byte(block) + 1 - offset, bytes.size());
        if (offset + at == checksums.first_byte(block) &&
            offset + end == checksums.last_byte(block) + 1) {
            hasher.emplace();
        }
        auto const expected = bytes.subspan(at, std::min(read_bytes, end - at));
        auto const found = std::span(buffer).first(expected.size());
        file.read_at(offset + at, found);
        if (std::memcmp(expected.data(), found.data(), found.size()) != 0) {
            auto const where = std::mismatch(expected.begin(), expected.end(), found.begin()).first;
            return at + static_cast<std::uint64_t>(where - expected.begin());
        }
        at += found.size();
        if (hasher) {
            hasher->add(found);
        }
        if (hasher && at == end) {
            checksums.hashes[block] = hasher->digest();
            known[block] = 1;
            hasher.reset();
        }
    }
    return bytes.size();
}

void write_checksum_header(File const& file) {
    auto checksums = ChecksumHeader::for_length(file.size());
    for (std::uint64_t block = 0; block < checksums.hashes.size(); ++block) {
        checksums.hashes[block] = hash_of_block(file, checksums, block);
    }
    file.write_at(0, checksums.encoded());
    file.sync();
}

} // namespace lockstep::checkpoint
