#pragma once

#include "lockstep/config/deck.hpp"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace lockstep::config {

/// A value as it was written, and where.
struct Written {
    std::string value;
    std::string origin; ///< "inputs/x.ini:12" or "command line"
};

/// What the decks and the command line say, before types and names are checked. Later decks win
/// over earlier ones, a deck over those it includes, the command line over all.
class DeckSource {
  public:
    /// Reads a deck and those that it includes (`include = base.ini`, relative to it).
    ///
    /// Throws  Error 66 when a deck is missing, 64 when it is no INI text
    void read(std::filesystem::path const& path);

    /// Takes "--section.key VALUE" and "--section.key=VALUE"; the others are returned.
    ///
    /// Throws  Error 64 when a value is missing
    std::vector<std::string> take_options(std::vector<std::string> const& arguments);

    /// Takes what `to_text` of a deck has printed; `origin` is named in messages.
    void read_printed(std::string const& text, std::string const& origin);

    void set(std::string const& key, Written value) { values_[key] = std::move(value); }
    std::map<std::string, Written> const& values() const noexcept { return values_; }

    /// All of it as one text and back, so that rank 0 can read and all ranks parse.
    std::string packed() const;
    static DeckSource unpacked(std::string const& text);

    /// Checks names, types and ranges and gives the deck; keys that were not given keep their
    /// defaults.
    ///
    /// Throws  Error 64 naming file, line, key, what was expected and the nearest valid name
    Deck parse() const;

  private:
    void read(std::filesystem::path const& path, int depth);

    std::map<std::string, Written> values_;
};

/// Every key of the deck with its default and a sentence, for --help.
std::string keys_help();

} // namespace lockstep::config
