#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace lockstep::text {

using Token = std::int32_t;
constexpr Token no_token = -1;

/// Two neighbouring tokens that become one.
struct Merge {
    Token left = 0;
    Token right = 0;
    Token whole = 0;
};

/// Byte pair encoding (Sennrich et al., ACL 2016) of words: each byte is a token, then the pair
/// whose merge comes first in the list becomes one, again and again.
class BytePairs {
  public:
    BytePairs() = default;
    /// `of_byte`: the token of each single byte, or no_token.
    BytePairs(std::array<Token, 256> const& of_byte, std::span<Merge const> merges);

    /// Adds the tokens of a word to `into`; a byte without a token is skipped.
    void encode(std::string_view word, std::vector<Token>& into) const;

  private:
    struct Found {
        std::int32_t place = 0; ///< in the list
        Token whole = 0;
    };
    std::array<Token, 256> of_byte_{};
    std::unordered_map<std::uint64_t, Found> merges_;
};

/// Learns merges from words and how often each occurs: the most frequent pair becomes a token, of
/// equally frequent ones the one with the smaller numbers, until there are `tokens` tokens or no
/// pair. Bytes are the tokens `of_byte`; new ones are numbered from `next` on. A merge takes time
/// in proportion to how often its pair occurs in the words; `before_merge` may throw to end it all.
///
/// Source  the `tokenizers` package, whose results this reproduces
std::vector<Merge> learn_merges(std::map<std::string, std::int64_t> const& words,
                                std::array<Token, 256> const& of_byte, Token next,
                                std::int64_t tokens, std::function<void()> const& before_merge);

} // namespace lockstep::text
