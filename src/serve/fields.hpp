#pragma once

#include <string_view>
#include <vector>

namespace lockstep::serve {

/// A field of a record; its texts point into the line.
struct Field {
    enum class Kind { number, text, truth, null };

    std::string_view key;
    std::string_view text{}; ///< of a text
    double number = 0;       ///< a truth is 1 or 0
    Kind kind = Kind::null;
    std::string_view value{}; ///< as it is written
};

/// Splits a record without lists, objects and escaped letters, such as a step's line, into `into`;
/// false where the line is anything else.
bool flat_fields(std::string_view line, std::vector<Field>& into);

/// Removes a JSON number from the front of `text`; where there is none, returns false and leaves
/// `text` as it is. Whole numbers below 2^53 are exact; others lie within 1e-15 of what is written.
bool take_number(std::string_view& text, double& number);

} // namespace lockstep::serve
