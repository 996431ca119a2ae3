#pragma once

#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace lockstep {

/// Packs values one after the other for another rank of the same build, each at a multiple of 8
/// bytes.
class Packer {
  public:
    template <class T>
    requires std::is_trivially_copyable_v<T>
    void put_all(std::span<T const> values) {
        put_size(values.size());
        put_bytes(std::as_bytes(values));
    }
    template <class T>
    requires std::is_arithmetic_v<T> || std::is_enum_v<T>
    void put(T value) { put_bytes(std::as_bytes(std::span(&value, 1))); }
    void put(std::string_view text) { put_all(std::span(text.data(), text.size())); }

    std::span<std::byte const> bytes() const noexcept { return bytes_; }

  private:
    void put_size(std::size_t size) { put(static_cast<std::uint64_t>(size)); }
    void put_bytes(std::span<std::byte const> bytes) {
        bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
        bytes_.resize((bytes_.size() + 7) / 8 * 8);
    }

    std::vector<std::byte> bytes_;
};

/// Returns what a `Packer` packed, in the same order. Spans refer to `bytes`, which must be aligned
/// to 8.
class Unpacker {
  public:
    explicit Unpacker(std::span<std::byte const> bytes) : rest_(bytes) {}

    /// Throws  Error 70 where fewer bytes are left than are requested, as do the others
    template <class T>
    requires std::is_trivially_copyable_v<T> std::span<T const> get_all() {
        auto const size = get<std::uint64_t>();
        return {reinterpret_cast<T const*>(take(size, sizeof(T)).data()), size};
    }
    template <class T>
    requires std::is_arithmetic_v<T> || std::is_enum_v<T> T get() {
        T value{};
        std::memcpy(&value, take(1, sizeof(T)).data(), sizeof(T));
        return value;
    }
    std::string get_text() {
        auto const characters = get_all<char>();
        return {characters.begin(), characters.end()};
    }

    bool at_end() const noexcept { return rest_.empty(); }

  private:
    std::span<std::byte const> take(std::uint64_t count, std::size_t size) {
        if (count > rest_.size() / size) {
            throw Error(ExitCode::software, {"a message from another rank was cut short",
                                             "it announces more data than it holds",
                                             "This is a bug; please report it"});
        }
        auto const taken = rest_.first(count * size);
        rest_ = rest_.subspan(std::min((taken.size() + 7) / 8 * 8, rest_.size()));
        return taken;
    }

    std::span<std::byte const> rest_;
};

} // namespace lockstep
