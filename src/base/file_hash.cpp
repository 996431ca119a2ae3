#include "base/file_hash.hpp"

#include "base/file.hpp"
#include "base/hash.hpp"

#include <algorithm>
#include <cstring>
#include <link.h>
#include <set>
#include <vector>

namespace lockstep {

namespace {

int add_object(dl_phdr_info* info, std::size_t /*size*/, void* paths) {
    static_cast<std::vector<std::string>*>(paths)->emplace_back(info->dlpi_name);
    return 0;
}

} // namespace

std::uint64_t program_hash(std::string const& word) {
    std::vector<std::string> loaded;
    ::dl_iterate_phdr(add_object, &loaded);
    std::set<std::string> paths{"/proc/self/exe"};
    for (auto const& path : loaded) {
        if (std::filesystem::path(path).filename().string().find(word) != std::string::npos) {
            paths.insert(path);
        }
    }
    std::vector<std::uint64_t> hashes; // sorted, since hosts may have them in other places
    hashes.reserve(paths.size());
    for (auto const& path : paths) {
        hashes.push_back(whole_hash(path));
    }
    std::sort(hashes.begin(), hashes.end());
    return hash64(std::as_bytes(std::span(hashes)));
}

std::uint64_t whole_hash(std::filesystem::path const& path) {
    constexpr std::uint64_t max = 1 << 20;
    auto const file = File::open_read(path);
    std::uint64_t const size = file.size();
    std::vector<std::byte> bytes(std::min(size, max));
    Hasher hasher;
    for (std::uint64_t offset = 0; offset < size; offset += max) {
        auto const part = std::span(bytes).first(std::min(max, size - offset));
        file.read_at(offset, part);
        hasher.add(part);
    }
    return hasher.digest();
}

std::uint64_t rough_hash(std::filesystem::path const& path) {
    constexpr std::uint64_t max = 1 << 16;
    auto const file = File::open_read(path);
    std::uint64_t const size = file.size();
    std::vector<std::byte> bytes(std::min(size, max));
    Hasher hasher;
    hasher.add(std::as_bytes(std::span(&size, 1)));
    for (auto const offset : {std::uint64_t{0}, size - bytes.size()}) {
        file.read_at(offset, bytes);
        hasher.add(bytes);
    }
    return hasher.digest();
}

} // namespace lockstep
