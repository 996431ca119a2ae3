#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::config {

/// A key of a deck's file: "section.key", its value, and its line, of which the first is 1.
struct DeckLine {
    std::string key;
    std::string value;
    int line = 0;
};

/// The keys of a deck's file in their order. `named_by` is where the file was named ("a.ini:3"), or
/// empty for the command line.
///
/// Throws  Error 66 for a missing file; 64 naming the line of a text that is not a deck: another
///         kind of file, other text than UTF-8, too long a line, or one that is neither a section,
///         a key with a value nor a comment
std::vector<DeckLine> read_entries(std::filesystem::path const& path, std::string const& named_by);

/// Throws  Error 64 naming `origin` where a key or a value is longer than a deck takes, no text, or
///         would be read as a comment in part
void require_plain(std::string const& key, std::string const& value, std::string const& origin);

} // namespace lockstep::config
