#include "deploy/c_values.hpp"

#include "base/text.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace lockstep::deploy {

std::string c_type(Element element) {
    return element == Element::f32   ? "float"
           : element == Element::f64 ? "double"
           : element == Element::i64 ? "int64_t"
           : element == Element::i8  ? "int8_t"
                                     : "uint8_t";
}

std::string c_number(double value, Element element) {
    bool const wide = element == Element::f64;
    if (element != Element::f32 && !wide) {
        auto const whole = static_cast<std::int64_t>(value);
        return whole == std::numeric_limits<std::int64_t>::min() ? "INT64_MIN"
               : element == Element::i64                         ? concat("INT64_C(", whole, ")")
                                                                 : std::to_string(whole);
    }
    auto const narrow = static_cast<float>(value);
    if (std::isnan(value)) {
        return "NAN";
    }
    if (wide ? std::isinf(value) : std::isinf(narrow)) {
        return value < 0 ? "-INFINITY" : "INFINITY";
    }
    std::array<char, 32> text{};
    auto* const last = text.data() + text.size();
    auto const end = wide ? std::to_chars(text.data(), last, value).ptr
                          : std::to_chars(text.data(), last, narrow).ptr;
    std::string made(text.data(), end); // the shortest that is read back as the same number
    if (made.find_first_of(".e") == std::string::npos) {
        made += ".0";
    }
    return wide ? made : made + "f";
}

} // namespace lockstep::deploy
