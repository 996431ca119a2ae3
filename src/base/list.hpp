#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// An entry of a list as people write it: a, "b, c", d.
struct ListEntry {
    std::string text;
    bool quoted = false; ///< taken literally
};

/// Entries with commas between them, trimmed. One in double quotes may hold commas, and blanks at
/// its ends; "" in it is a quote. A blank text has none.
///
/// Throws  Error 64 for a quote that is not closed, or is followed by something else than a comma
std::vector<ListEntry> list_entries(std::string_view text);

/// The same without saying which were quoted.
std::vector<std::string> list_texts(std::string_view text);

/// A list from which `list_entries` returns these texts again; each is quoted.
std::string list_of(std::vector<std::string> const& texts);

} // namespace lockstep
