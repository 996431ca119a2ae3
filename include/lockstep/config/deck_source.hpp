#pragma once

#include "lockstep/config/deck.hpp"

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace lockstep::config {

/// The layer of a deck that a run has printed, which says all keys.
constexpr int printed_layer = 0;

/// The origin of values that the command line sets.
constexpr char const* command_line = "command line";

/// A value as it was written, and where.
struct Written {
    std::string value;
    std::string origin; ///< "inputs/x.ini:12" or "command line"
    int layer = 0; ///< the later one wins: decks in the order of reading, the command line last
    std::string before{}; ///< the value that an earlier layer had; empty: none
};

/// A value of a deck's file, and where it stands there; or a key that no deck has set.
struct ValueOrigin {
    std::string value;
    std::string origin; ///< "inputs/x.ini:12" or "not set in inputs/x.ini"
    bool is_set = true;
};

/// Which other model or task has a key that the `named` one does not have, such as "model cnn";
/// empty if none has.
using KeyOwners = std::function<std::string(std::string const& named, std::string const& key)>;

/// What the decks and the command line say, before types and names are checked. Later decks win
/// over earlier ones, a deck over those it includes, the command line over all. Nothing here is
/// collective: each process reads for itself, or rank 0 reads and sends `packed`.
class DeckSource {
  public:
    /// Reads a deck and those that it includes (`include = base.ini`, relative to it).
    ///
    /// Throws  Error 66 when a deck is missing; 64 when it is not an INI text, sets a key twice, or
    ///         includes itself, more than 8 levels or more than 64 decks
    void read(std::filesystem::path const& path);

    /// Consumes "--section.key VALUE" and "--section.key=VALUE"; returns the other words. Of
    /// several values for one key the last one holds.
    ///
    /// Throws  Error 64 when a value is missing, too long, not UTF-8, or has a #
    std::vector<std::string> take_options(std::vector<std::string> const& arguments);

    /// Reads a deck that `to_text` has printed; `origin` is named in messages. Other lines are
    /// skipped.
    void read_printed(std::string const& text, std::string const& origin);

    /// Sets "section.key" on top of all that was read so far; `parse` checks it.
    void set(std::string const& key, Written value);
    std::map<std::string, Written> const& values() const noexcept { return values_; }
    /// A sentence on each value that the same command line has replaced.
    std::vector<std::string> const& repeated() const noexcept { return repeated_; }

    /// Where `chooser` ("model.name") was changed by a later deck or the command line: removes the
    /// keys that earlier decks set for the model or task that they had named. Returns a sentence on
    /// each.
    ///
    /// Throws  what `owners` throws
    std::vector<std::string> drop_keys_of_another(std::string const& chooser,
                                                  KeyOwners const& owners);

    /// Where each value of a deck's file stands, by key; and which keys `decks` ("a.ini, b.ini") do
    /// not set. Values from the command line have no place.
    std::map<std::string, ValueOrigin> places(std::string const& decks) const;

    /// All of it as one text and back, so that rank 0 can read and all ranks parse. `text` is what
    /// `packed` returned.
    std::string packed() const;
    static DeckSource unpacked(std::string const& text);

    /// Checks names, types and ranges and returns the deck; keys that were not set, or that another
    /// key for the same thing has replaced, keep their defaults.
    ///
    /// Throws  Error 64 naming file, line, key, what was expected and the nearest valid name; or
    ///         where one source sets two keys for one thing
    Deck parse() const;

  private:
    void read(std::filesystem::path const& path, std::string const& named_by, int depth);

    std::map<std::string, Written> values_;
    std::vector<std::string> repeated_;
    int layer_ = printed_layer;
    int decks_ = 0; ///< that were read, included ones too
};

/// The key that `name` was probably meant to be, "optimizer.learning-rate" for "lr" or
/// "learning-rate"; empty if no key is near.
std::string nearest_key(std::string const& name);

/// Every key of the deck by section, with its default, its choices and a sentence, for --help.
std::string keys_help();

} // namespace lockstep::config
