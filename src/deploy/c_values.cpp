#include "deploy/c_values.hpp"

#include "base/text.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace lockstep::deploy {

std::string c_type(Element element) {
    return element == Element::f32   ? "float"
           : element == Element::i64 ? "int64_t"
           : element == Element::i8  ? "int8_t"
                                     : "uint8_t";
}

std::string c_number(double value, Element element) {
    if (element != Element::f32) {
        auto const whole = static_cast<std::int64_t>(value);
        return whole == std::numeric_limits<std::int64_t>::min() ? "INT64_MIN"
               : element == Element::i64                         ? concat("INT64_C(", whole, ")")
                                                                 : std::to_string(whole);
    }
    auto const narrow = static_cast<float>(value);
    if (std::isnan(narrow)) {
        return "NAN";
    }
    if (std::isinf(narrow)) {
        return narrow < 0 ? "-INFINITY" : "INFINITY";
    }
    std::array<char, 32> text{};
    auto const end = std::to_chars(text.data(), text.data() + text.size(), narrow).ptr;
    std::string made(text.data(), end); // the shortest that is read back as the same number
    if (made.find_first_of(".e") == std::string::npos) {
        made += ".0";
    }
    return made + "f";
}

} // namespace lockstep::deploy
