#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::launch {

struct Question {
    std::string text;
    std::string otherwise; ///< for an empty answer
    /// The meaning of an answer; throws a std::string, what was expected, or an Error.
    std::function<std::string(std::string const&)> meaning;
};

/// Asks on the terminal until an answer has a meaning, and returns the meaning.
///
/// Throws  Error 64 at the end of input or an interrupt
std::string ask(Question const& question);

/// Meanings of an answer: one of some words, which may be abbreviated to unambiguous first letters;
/// or a whole number.
std::function<std::string(std::string const&)> one_of(std::vector<std::string> words);
std::function<std::string(std::string const&)> from_to(std::int64_t min, std::int64_t max);

} // namespace lockstep::launch
