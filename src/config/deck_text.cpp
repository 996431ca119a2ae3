#include "config/deck_text.hpp"

#include "base/file.hpp"
#include "base/file_kind.hpp"
#include "base/input_error.hpp"
#include "base/line_ends.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"
#include "config/values.hpp"
#include "lockstep/base/error.hpp"

#include <boost/program_options.hpp>

#include <algorithm>
#include <cerrno>
#include <sstream>
#include <string_view>
#include <unistd.h>

namespace lockstep::config {

namespace {

namespace options = boost::program_options;

// A deck is written by people: what is larger is another file, and would take long to look through.
constexpr std::uintmax_t max_bytes = 1 << 20;
constexpr std::size_t longest_value = 1 << 16;
constexpr std::size_t longest_key = 200;

constexpr char const* form = "A deck holds [section] lines, key = value lines and # comments";

/// UTF-8 without control characters of ASCII other than tabs.
bool is_text(std::string_view text) {
    return is_utf8(text) && std::ranges::none_of(text, [](char letter) {
               return (letter >= 0 && letter < 0x20 && letter != '\t') || letter == 0x7F;
           });
}

std::string text_of(std::filesystem::path const& path, std::string const& named_by) {
    auto const what = named_by.empty()
                          ? concat("cannot open ", shown(path.string()))
                          : concat("include = ", shown(path.string()), " (", named_by, ")");
    std::error_code failure;
    auto const status = std::filesystem::status(path, failure);
    if (!std::filesystem::exists(status) ||
        (std::filesystem::is_regular_file(status) && ::access(path.c_str(), R_OK) != 0)) {
        auto const error = input_error(path, failure ? failure.value() : errno);
        auto const& text = error.text();
        throw Error(error.code(), {what, text.why,
                                   failure == std::errc::no_such_file_or_directory
                                       ? "Name a deck, such as inputs/fashion_mnist.ini"
                                       : text.next});
    }
    if (std::filesystem::is_directory(status)) {
        auto const own_deck = path / "deck.ini";
        throw Error(ExitCode::no_input,
                    {what, "it is a directory",
                     std::filesystem::exists(own_deck, failure)
                         ? concat("To name a run, give its directory as the argument after the "
                                  "deck; the run's own deck is ",
                                  shown(own_deck.string()))
                         : std::string("Name a deck, such as inputs/fashion_mnist.ini")});
    }
    if (!std::filesystem::is_regular_file(status)) {
        throw Error(ExitCode::usage, {what, "it is a device or a pipe, not a file", "Name a file"});
    }
    if (is_hdf5(path)) {
        throw Error(ExitCode::usage,
                    {what, "it is an HDF5 file, such as a model or a data set, not a deck",
                     "Name a deck here; the command's --help shows where such a file is named"});
    }
    auto const bytes = std::filesystem::file_size(path);
    if (bytes > max_bytes) {
        throw Error(ExitCode::usage,
                    {what,
                     concat("it has ", bytes_text(bytes), ", but a deck may have at most ",
                            bytes_text(max_bytes)),
                     "Name a deck"});
    }
    auto text = read_text(path);
    require_line_ends(path, text, ExitCode::usage);
    return text;
}

/// Where the quotes end that begin at `begin`; npos where they are not closed. "" is a quote
/// inside.
std::size_t end_of_quotes(std::string_view text, std::size_t begin) {
    auto at = text.find('"', begin + 1);
    while (at != std::string_view::npos && at + 1 < text.size() && text[at + 1] == '"') {
        at = text.find('"', at + 2);
    }
    return at;
}

/// A line without its comment, which begins with a # at its start or after a blank, but not in the
/// quotes of a list's entry: names of files and of runs may contain a #.
std::string_view without_comment(std::string_view line) {
    auto const equals = line.find('=');
    bool begins_entry = false;
    bool after_blank = true;
    for (std::size_t at = 0; at < line.size(); ++at) {
        if (line[at] == '#' && after_blank) {
            return line.substr(0, at);
        }
        if (line[at] == '"' && begins_entry) {
            auto const end = end_of_quotes(line, at);
            at = end == std::string_view::npos ? at : end;
        }
        after_blank = line[at] == ' ' || line[at] == '\t';
        bool const separates = at == equals || (at > equals && line[at] == ',');
        begins_entry = separates || (begins_entry && after_blank);
    }
    return line;
}

/// Names what is wrong with a line, before it is taken apart.
void require_line(std::string_view content, std::string const& origin) {
    auto const refuse = [&](std::string const& why) {
        throw Error(ExitCode::usage, {concat("not a line of a deck (", origin, ")"), why, form});
    };
    if (content.size() > longest_value) {
        refuse(concat("it has ", count_text(static_cast<std::int64_t>(content.size())),
                      " characters, but may have at most ",
                      count_text(static_cast<std::int64_t>(longest_value))));
    }
    if (!is_text(content)) {
        refuse("it is not UTF-8 text: some of its bytes encode no character");
    }
    auto const line = trimmed(without_comment(content));
    if (line.empty()) {
        return;
    }
    bool const section = line.front() == '[' && line.back() == ']';
    auto const equals = line.find('=');
    if (!section && equals == std::string_view::npos) {
        refuse(concat("\"", shown(std::string(line)), "\" is not a section and has no ="));
    }
    auto const name = section ? line.substr(1, line.size() - 2) : trimmed(line.substr(0, equals));
    if (name.empty() || name.size() > longest_key) {
        refuse(name.empty()
                   ? "it has no name"
                   : concat("its name has ", count_text(static_cast<std::int64_t>(name.size())),
                            " characters, but may have at most ", longest_key));
    }
}

/// The line as Boost.Program_options takes it apart, in the section where it stands; but for the
/// value, of which Boost would cut off a #.
void take_apart(std::string const& section, std::string const& line, int number,
                std::vector<DeckLine>& entries) {
    auto const equals = line.find('=');
    std::istringstream in(concat(section, "\n", line.substr(0, equals), "=\n"));
    auto const parsed = options::parse_config_file(in, options::options_description(), true);
    for (auto const& option : parsed.options) {
        entries.push_back({option.string_key,
                           std::string(trimmed(std::string_view(line).substr(equals + 1))),
                           number});
    }
}

} // namespace

std::vector<DeckLine> read_entries(std::filesystem::path const& path, std::string const& named_by) {
    auto const text = text_of(path, named_by);
    constexpr std::string_view mark = "\xEF\xBB\xBF"; // that some editors begin UTF-8 with
    std::istringstream in(text.starts_with(mark) ? text.substr(mark.size()) : text);
    std::vector<DeckLine> entries;
    std::string section;
    std::string line;
    for (int number = 1; std::getline(in, line); ++number) {
        if (line.ends_with('\r')) {
            line.pop_back();
        }
        auto const origin = concat(path.string(), ":", number);
        require_line(line, origin);
        auto const content = std::string(trimmed(without_comment(line)));
        if (content.starts_with('[') && content.ends_with(']')) {
            section = content;
            continue;
        }
        if (content.empty()) {
            continue;
        }
        try {
            take_apart(section, content, number, entries);
        } catch (options::error const& error) {
            throw Error(ExitCode::usage,
                        {concat("not a line of a deck (", origin, ")"), error.what(), form});
        }
    }
    return entries;
}

void require_plain(std::string const& key, std::string const& value, std::string const& origin) {
    auto const refuse = [&](std::string const& why, char const* next) {
        throw Error(ExitCode::usage, {concat(shown(key), " (", origin, ")"), why, next});
    };
    if (key.size() > longest_key || value.size() > longest_value) {
        refuse(concat("a key has at most ", longest_key, " characters, and a value at most ",
                      count_text(static_cast<std::int64_t>(longest_value))),
               "Shorten the key or the value");
    }
    if (!is_text(key) || !is_text(value)) {
        refuse("it is not one line of UTF-8 text", "Remove the bytes that encode no character");
    }
    auto const line = concat("= ", value); // as decks have it
    if (without_comment(line).size() != line.size()) {
        refuse("the value has a # at its beginning or after a blank, which begins a comment in a "
               "deck",
               "Use a value without #. If it is the name of a file, rename the file; in a list of "
               "files, put quotes around the name");
    }
}

} // namespace lockstep::config
