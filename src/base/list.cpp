#include "base/list.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

namespace lockstep {

namespace {

/// Takes an entry in quotes off a text that begins with one.
std::string take_quoted(std::string_view& rest, std::string_view whole) {
    std::string entry;
    for (rest.remove_prefix(1);; rest.remove_prefix(1)) {
        auto const end = rest.find('"');
        if (end == std::string_view::npos) {
            throw Error(
                ExitCode::usage,
                {concat("cannot read the list ", whole), "a quote is not closed",
                 "Put a quote before and after each name that contains commas, as in \"a, b\""});
        }
        entry += rest.substr(0, end);
        rest.remove_prefix(end + 1);
        if (!rest.starts_with('"')) {
            return entry;
        }
        entry += '"';
    }
}

} // namespace

std::vector<ListEntry> list_entries(std::string_view text) {
    std::vector<ListEntry> entries;
    auto rest = trimmed(text);
    if (rest.empty()) {
        return entries;
    }
    for (;; rest = trimmed(rest.substr(1))) {
        if (rest.starts_with('"')) {
            entries.push_back({take_quoted(rest, text), true});
            rest = trimmed(rest);
        } else {
            auto const entry = rest.substr(0, rest.find(','));
            entries.push_back({std::string(trimmed(entry)), false});
            rest.remove_prefix(entry.size());
        }
        if (rest.empty()) {
            return entries;
        }
        if (!rest.starts_with(',')) {
            throw Error(ExitCode::usage,
                        {concat("cannot read the list ", text),
                         "a quoted name is not followed by a comma",
                         "Separate names by commas, and write each quote inside a name twice"});
        }
    }
}

std::vector<std::string> list_texts(std::string_view text) {
    std::vector<std::string> texts;
    for (auto& entry : list_entries(text)) {
        texts.push_back(std::move(entry.text));
    }
    return texts;
}

std::string list_of(std::vector<std::string> const& texts) {
    std::string list;
    for (auto const& text : texts) {
        list += list.empty() ? "\"" : ", \"";
        for (auto const c : text) {
            list += c == '"' ? "\"\"" : std::string(1, c);
        }
        list += '"';
    }
    return list;
}

} // namespace lockstep
