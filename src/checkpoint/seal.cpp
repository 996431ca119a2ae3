#include "lockstep/checkpoint/seal.hpp"

#include "lockstep/base/error.hpp"
#include "lockstep/base/hash.hpp"
#include "lockstep/base/text.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <string_view>

namespace lockstep::checkpoint {

namespace {

static_assert(std::endian::native == std::endian::little, "the seal is stored little-endian");

constexpr std::string_view magic = "LOCKSTEPSEAL";
constexpr std::uint32_t version = 1;
constexpr std::uint64_t least_block = std::uint64_t{64} << 10;
constexpr std::uint64_t head_bytes = 40; // magic, version, length, block size, blocks
constexpr std::uint64_t read_bytes = std::uint64_t{256} << 10; // stays in a core's own cache

static_assert(head_bytes + 8 * Seal::most_blocks + 8 <= seal_bytes);

std::uint64_t blocks_of(std::uint64_t length, std::uint64_t block_bytes) {
    auto const sealed = length - std::min(length, seal_bytes);
    return (sealed + block_bytes - 1) / block_bytes;
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
    return {ExitCode::data,
            {concat(path.string(), " is not as it was sealed"), why,
             "Use an older checkpoint, or make or copy the file again"}};
}

} // namespace

Seal Seal::for_length(std::uint64_t length) {
    Seal seal{length, least_block, {}};
    while (blocks_of(length, seal.block_bytes) > most_blocks) {
        seal.block_bytes *= 2;
    }
    seal.hashes.resize(blocks_of(length, seal.block_bytes));
    return seal;
}

std::uint64_t Seal::first_byte(std::uint64_t block) const {
    return seal_bytes + block * block_bytes;
}

std::uint64_t Seal::last_byte(std::uint64_t block) const {
    return std::min(first_byte(block + 1), length) - 1;
}

std::array<std::byte, seal_bytes> Seal::encoded() const {
    std::array<std::byte, seal_bytes> bytes{};
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

Seal Seal::decoded(std::span<std::byte const, seal_bytes> bytes,
                   std::filesystem::path const& path) {
    if (std::memcmp(bytes.data(), magic.data(), magic.size()) != 0) {
        throw damaged(path, "its first bytes are no seal: it was never finished, is damaged, or is "
                            "not a file of this program");
    }
    if (auto const found = get<std::uint32_t>(bytes, magic.size()); found != version) {
        throw damaged(path, concat("it is of version ", found, ", not ", version,
                                   ": damaged, or written by a newer program"));
    }
    auto const blocks = get<std::uint64_t>(bytes, 32);
    auto const used = head_bytes + 8 * std::min(blocks, most_blocks);
    bool const blank = std::all_of(bytes.begin() + static_cast<std::ptrdiff_t>(used + 8),
                                   bytes.end(), [](std::byte b) { return b == std::byte{0}; });
    if (blocks > most_blocks || !blank ||
        get<std::uint64_t>(bytes, used) != hash64(bytes.first(used))) {
        throw damaged(path,
                      concat("bytes 0 to ", seal_bytes - 1, ", the seal itself, are damaged"));
    }
    auto seal = for_length(get<std::uint64_t>(bytes, 16));
    if (seal.block_bytes != get<std::uint64_t>(bytes, 24) || seal.hashes.size() != blocks) {
        throw damaged(path, "its blocks do not fit its length");
    }
    for (std::uint64_t block = 0; block < blocks; ++block) {
        seal.hashes[block] = get<std::uint64_t>(bytes, head_bytes + 8 * block);
    }
    return seal;
}

Seal read_seal(File const& file) {
    std::array<std::byte, seal_bytes> bytes{};
    file.read_at(0, bytes);
    return Seal::decoded(bytes, file.path());
}

void require_sealed(File const& file) {
    auto const seal = read_seal(file);
    if (auto const found = file.size(); found != seal.length) {
        throw damaged(file.path(),
                      concat("it was sealed with ", seal.length, " bytes and has ", found));
    }
}

std::uint64_t hash_of_block(File const& file, Seal const& seal, std::uint64_t block) {
    Hasher hasher;
    std::vector<std::byte> buffer(std::min(seal.block_bytes, read_bytes));
    auto const end = seal.last_byte(block) + 1;
    for (auto at = seal.first_byte(block); at < end; at += buffer.size()) {
        auto const piece =
            std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), end - at));
        file.read_at(at, piece);
        hasher.add(piece);
    }
    return hasher.digest();
}

std::uint64_t read_back(File const& file, std::uint64_t offset, std::span<std::byte const> bytes,
                        Seal& seal, std::vector<std::uint64_t>& known) {
    std::vector<std::byte> buffer(std::min<std::uint64_t>(bytes.size(), read_bytes));
    std::optional<Hasher> hasher; // of a block that begins and ends here
    for (std::uint64_t at = 0; at < bytes.size();) {
        auto const block = (offset + at - seal_bytes) / seal.block_bytes;
        auto const end = std::min(seal.last_byte(block) + 1 - offset, bytes.size());
        if (offset + at == seal.first_byte(block) && offset + end == seal.last_byte(block) + 1) {
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
            seal.hashes[block] = hasher->digest();
            known[block] = 1;
            hasher.reset();
        }
    }
    return bytes.size();
}

void write_seal(File const& file) {
    auto seal = Seal::for_length(file.size());
    for (std::uint64_t block = 0; block < seal.hashes.size(); ++block) {
        seal.hashes[block] = hash_of_block(file, seal, block);
    }
    file.write_at(0, seal.encoded());
    file.sync();
}

} // namespace lockstep::checkpoint
