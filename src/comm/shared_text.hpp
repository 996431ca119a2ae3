#pragma once

#include <array>
#include <atomic>
#include <string>
#include <string_view>

namespace lockstep::comm {

/// A short text in shared memory; one rank writes, all may read.
template <std::size_t length>
class SharedText {
  public:
    void set(std::string_view text) noexcept {
        for (std::size_t i = 0; i < length; ++i) {
            characters_[i].store(i < text.size() ? text[i] : '\0', std::memory_order_relaxed);
        }
    }
    std::string text() const {
        std::string text;
        for (auto const& each : characters_) {
            char const character = each.load(std::memory_order_relaxed);
            if (character == '\0') {
                break;
            }
            text.push_back(character);
        }
        return text;
    }

  private:
    std::array<std::atomic<char>, length> characters_;
};

} // namespace lockstep::comm
