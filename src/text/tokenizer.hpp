#pragma once

#include "text/byte_pairs.hpp"
#include "text/pattern.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace lockstep::text {

/// A byte-level byte pair encoding, as Hugging Face's tokenizer.json describes it: a text is cut
/// into words by a pattern, and each word into tokens. Any text can be encoded; decoding returns
/// the same text.
class Tokenizer {
  public:
    /// Reads a tokenizer.json; `from` is named in messages.
    ///
    /// Throws  Error 65 for a damaged file; 64 naming a feature that is not supported here; 69 in a
    ///         program that was built without PCRE2
    static Tokenizer of_json(std::string const& json, std::string const& from);

    /// Learns an encoding of `tokens` tokens from texts, which `visit` hands out one after the
    /// other; the last token is "<|endoftext|>". Texts are cut into words as in GPT-2.
    /// `before_merge` is called before each token is learnt, and may throw.
    ///
    /// Throws  Error 64 for fewer than 257 tokens; as `encode`
    static Tokenizer learnt(
        std::int64_t tokens,
        std::function<void(std::function<void(std::string_view)> const&)> const& visit,
        std::function<void()> const& before_merge = [] {});

    /// The text of a tokenizer.json for it.
    std::string const& json() const noexcept { return json_; }

    std::int64_t tokens() const noexcept { return static_cast<std::int64_t>(bytes_.size()); }
    /// The token that ends a document: "<|endoftext|>", "<|end_of_text|>" or "</s>"; nothing where
    /// there is none of these.
    std::optional<Token> end_of_text() const;
    /// How many bytes of text each token stands for; 0 for special tokens.
    ///
    /// Shape  [tokens]
    std::vector<std::uint8_t> lengths() const;

    /// Several threads may encode at once.
    ///
    /// Throws  Error 65 for a text that is not UTF-8, naming `from`
    std::vector<Token> encode(std::string_view text, std::string const& from) const;
    /// The text of tokens. It need not be valid UTF-8, since a character may be split over tokens;
    /// unknown numbers and special tokens are left out.
    std::string decode(std::span<Token const> tokens) const;

  private:
    Tokenizer() = default;
    void encode_words(std::string_view text, std::vector<Token>& into) const;

    std::string json_;
    std::vector<std::string> bytes_;                  ///< of each token
    std::vector<bool> special_;                       ///< stands for no text
    std::unordered_map<std::string, Token> of_bytes_; ///< of whole words, where merges are ignored
    std::map<std::string, Token, std::greater<>> set_apart_; ///< texts that are always a token
    std::string set_apart_begin_;                            ///< with these bytes
    std::vector<Pattern> patterns_;                          ///< one after the other
    BytePairs pairs_;
    bool whole_words_first_ = false;
    bool begins_with_blank_ = false;
};

} // namespace lockstep::text
