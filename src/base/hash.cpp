#include "base/hash.hpp"

#include <xxhash.h>
// Renames what is called below to what chooses by processor.
#ifdef LOCKSTEP_XXHASH_DISPATCHES
#include <xxh_x86dispatch.h>
#endif

#include <fmt/format.h>
#include <new>

namespace lockstep {

struct Hasher::State {
    XXH3_state_t* raw = XXH3_createState();
    State() {
        if (raw == nullptr || XXH3_64bits_reset(raw) != XXH_OK) {
            throw std::bad_alloc();
        }
    }
    ~State() { XXH3_freeState(raw); }
    State(State const&) = delete;
    State& operator=(State const&) = delete;
};

std::uint64_t hash64(std::span<std::byte const> bytes) {
    return XXH3_64bits(bytes.data(), bytes.size());
}

std::uint64_t hash64(std::string_view text) {
    return XXH3_64bits(text.data(), text.size());
}

Hasher::Hasher() : state_(std::make_unique<State>()) {}
Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

void Hasher::add(std::span<std::byte const> bytes) {
    XXH3_64bits_update(state_->raw, bytes.data(), bytes.size());
}

std::uint64_t Hasher::digest() const {
    return XXH3_64bits_digest(state_->raw);
}

std::string hex(std::uint64_t value) {
    return fmt::format("{:016x}", value);
}

} // namespace lockstep
