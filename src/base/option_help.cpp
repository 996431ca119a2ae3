#include "base/arguments.hpp"
#include "base/page_columns.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <sstream>

namespace lockstep {

namespace {

constexpr std::size_t max_head = 30;    ///< columns; a longer one has a line to itself
constexpr std::size_t max_in_usage = 9; ///< options; of more the usage names none

/// Columns of a text in UTF-8.
std::size_t width_of(std::string const& text) {
    return static_cast<std::size_t>(std::ranges::count_if(
        text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

/// Lays words out in lines: those behind the first are indented.
std::string laid_out(std::string first, std::vector<std::string> const& words, std::size_t indent) {
    auto const page = page_columns();
    std::string text;
    auto line = std::move(first);
    bool fresh = true; // nothing stands behind the indentation yet
    for (auto const& word : words) {
        if (!fresh && width_of(line) + 1 + width_of(word) > page) {
            text += line + "\n";
            line = std::string(indent, ' ');
            fresh = true;
        }
        line += (fresh ? "" : " ") + word;
        fresh = false;
    }
    return text + line + "\n";
}

std::vector<std::string> words_of(std::string const& text) {
    std::istringstream in(text);
    std::vector<std::string> words;
    for (std::string word; in >> word;) {
        words.push_back(word);
    }
    return words;
}

std::string head_of(Option const& row) {
    return row.value.empty() ? row.name : concat(row.name, " ", row.value);
}

/// The parts of a usage that are never parted.
std::vector<std::string> usage_parts(Options const& options) {
    std::vector<std::string> parts;
    if (!options.positions.names.empty()) {
        parts.push_back(options.positions.names);
    }
    auto const named = [&](Option const& row) {
        return std::ranges::find(options.exclusive, row.name) != options.exclusive.end();
    };
    bool const all = options.rows.size() <= max_in_usage;
    for (auto const& row : options.rows) {
        if (row.required) {
            parts.push_back(head_of(row));
        } else if (all && !named(row)) {
            parts.push_back(concat("[", head_of(row), "]"));
        }
    }
    if (all && !options.exclusive.empty()) {
        parts.push_back(concat("[", joined(options.exclusive, " | "), "]"));
    }
    if (!all) {
        parts.emplace_back("[OPTION]...");
    }
    if (options.nearest_key != nullptr) {
        parts.emplace_back("[--section.key VALUE]...");
    }
    return parts;
}

} // namespace

std::string paragraph(std::string first, std::string const& text, std::size_t indent) {
    return laid_out(std::move(first), words_of(text), indent);
}

std::string option_lines(std::vector<Option> const& rows, std::size_t indent) {
    auto const widest_head = std::min(max_head, page_columns() / 3);
    std::size_t column = 0;
    for (auto const& row : rows) {
        auto const width = width_of(head_of(row));
        column = width <= widest_head ? std::max(column, width) : column;
    }
    column += indent + 2;
    std::string text;
    for (auto const& row : rows) {
        auto line = std::string(indent, ' ') + head_of(row);
        auto const width = width_of(line);
        if (width + 2 > column) {
            text += line + "\n";
            line = std::string(column, ' ');
        } else {
            line += std::string(column - width, ' ');
        }
        auto words = words_of(row.meaning);
        if (!row.otherwise.empty()) {
            words.push_back(concat("(", row.otherwise, ")"));
        }
        text += laid_out(std::move(line), words, column);
    }
    return text;
}

std::string Options::usage() const {
    return concat(command, " ", joined(usage_parts(*this), " "));
}

std::string Options::help() const {
    auto const parts = usage_parts(*this);
    auto behind = command.size() + 1;
    for (auto const& part : parts) { // below the command's name where there is room behind it
        behind = behind + width_of(part) > page_columns() ? 8 : behind;
    }
    auto text = laid_out(command + " ", parts, behind);
    text += paragraph("    ", about, 4);
    auto shown = rows;
    if (nearest_key != nullptr) {
        shown.push_back({.name = "--section.key",
                         .value = "VALUE",
                         .meaning = "set a key of the deck; lockstep train --help lists all keys"});
    }
    return text + option_lines(shown, 8);
}

} // namespace lockstep
