#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace lockstep {

/// XXH3, 64 bits (https://xxhash.com), of one block of bytes.
std::uint64_t hash64(std::span<std::byte const> bytes);
std::uint64_t hash64(std::string_view text);

/// XXH3 over bytes that are added in parts.
class Hasher {
  public:
    Hasher();
    ~Hasher();
    Hasher(Hasher&&) noexcept;
    Hasher& operator=(Hasher&&) noexcept;

    void add(std::span<std::byte const> bytes);
    std::uint64_t digest() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Sixteen hexadecimal digits.
std::string hex(std::uint64_t value);

} // namespace lockstep
