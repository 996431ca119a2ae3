#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

/// Why an option refuses a value, and what to do; if the latter is empty, the message shows the
/// usage.
struct RefusedValue {
    std::string why;
    std::string next{};
};

/// A row of a command's table: how an option is written, what it means, where its value goes.
struct Option {
    std::string name;        ///< "--devices"
    std::string value;       ///< "N", "mpirun|srun"; empty: a flag
    std::string meaning;     ///< for --help
    std::string otherwise{}; ///< its default, for --help; empty: none to show
    std::function<void(std::string const&)> take{}; ///< may throw RefusedValue
    bool required = false;
    bool takes_blank = false; ///< else an empty value counts as none
};

/// Words of a command line that are not options of the table, as they were given.
struct Words {
    std::vector<std::string> positions{};
    std::vector<std::string> keys{}; ///< "--section.key", "VALUE" of a deck, for config::DeckSource

    /// Both, as `lockstep train` takes them.
    std::vector<std::string> all() const;
};

/// The words without option that a command takes.
struct Positions {
    std::string names{}; ///< "FILE|RUN OUT"
    std::size_t min = 0;
    std::size_t max = 0;
};

/// The options of a command: its words are parsed by this table, and its help is made from it.
struct Options {
    std::string command{}; ///< "lockstep watch"
    Positions positions{};
    std::string about{}; ///< what the command does, for --help
    std::vector<Option> rows{};
    std::vector<std::string> exclusive{}; ///< at most one of these flags may be set
    /// Set if the command takes --section.key VALUE, too: the key that an unknown option was
    /// probably meant to be, or an empty text.
    std::string (*nearest_key)(std::string const& name) = nullptr;

    /// Gives the rows their values. An option is written "--name VALUE" or "--name=VALUE"; of
    /// several of one name the last one counts, and the others are told on standard error.
    ///
    /// Throws  Error 64 that says what is wrong and how the command is used
    Words parse(std::vector<std::string> const& words) const;

    /// "lockstep watch RUN [--once] [--interval SECONDS]", in one line.
    std::string usage() const;
    /// The usage, what the command does, and a line or more for each option.
    std::string help() const;
};

/// `text` wrapped to page_columns(); the first line begins with `first`, the others are indented by
/// `indent`.
std::string paragraph(std::string first, std::string const& text, std::size_t indent);

/// The lines of --help for these rows, indented.
std::string option_lines(std::vector<Option> const& rows, std::size_t indent);

/// Rows by the kind of their value. `words`: "--devices N".
namespace option {

struct WholeLimits {
    std::int64_t min = 1;
    std::int64_t max = std::numeric_limits<std::int64_t>::max();
};
struct RealLimits {
    double min = 0;
    double max = std::numeric_limits<double>::infinity();
};

/// The number in `text`; a suffix K or M stands for 2^10 or 2^20.
///
/// Throws  RefusedValue
std::int64_t whole_number(std::string const& text, WholeLimits limits);

/// An option whose value `take` handles.
Option own(std::string const& words, std::string meaning,
           std::function<void(std::string const&)> take);
Option flag(std::string name, std::string meaning, bool& given);
Option text(std::string const& words, std::string meaning, std::string& into);
Option path(std::string const& words, std::string meaning, std::filesystem::path& into);
/// A list with commas; names that have some stand in double quotes.
Option texts(std::string const& words, std::string meaning, std::vector<std::string>& into);
Option one_of(std::string name, std::vector<std::string> values, std::string meaning,
              std::string& into);
/// Some of `values`, separated by commas.
Option some_of(std::string name, std::vector<std::string> values, std::string meaning,
               std::vector<std::string>& into);
Option real(std::string const& words, std::string meaning, double& into, RealLimits limits = {});
Option real(std::string const& words, std::string meaning, std::optional<double>& into,
            RealLimits limits = {});
Option reals(std::string const& words, std::string meaning, std::vector<double>& into);
/// Whole numbers from 1, separated by commas.
Option wholes(std::string const& words, std::string meaning, std::vector<std::int64_t>& into);

template <std::integral Number>
Option whole(std::string const& words, std::string meaning, Number& into, WholeLimits limits = {}) {
    if (std::cmp_less(std::numeric_limits<Number>::max(), limits.max)) {
        limits.max = static_cast<std::int64_t>(std::numeric_limits<Number>::max());
    }
    auto row = own(words, std::move(meaning), [&into, limits](std::string const& text) {
        into = static_cast<Number>(whole_number(text, limits));
    });
    if (!std::cmp_less(into, limits.min)) { // else that means: not said
        row.otherwise = std::to_string(into);
    }
    return row;
}
/// Makes the option mandatory.
Option required(Option row);

} // namespace option

} // namespace lockstep
