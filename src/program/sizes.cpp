#include "sizes.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

namespace lockstep::program {

namespace {

using Values = std::vector<c10::IValue>;

bool is_whole(c10::IValue const& value) {
    return value.isInt() || value.isBool();
}

std::int64_t whole(c10::IValue const& value) {
    return value.isBool() ? static_cast<std::int64_t>(value.toBool()) : value.toInt();
}

double real(c10::IValue const& value) {
    return is_whole(value) ? static_cast<double>(whole(value)) : value.toDouble();
}

std::int64_t divisor(c10::IValue const& value) {
    if (whole(value) == 0) {
        throw Error(ExitCode::usage,
                    {"the exported program divides a size by zero",
                     "the program was not exported for the shape of this batch",
                     "Export the model with dynamic_shapes that allow this batch"});
    }
    return whole(value);
}

// Sizes have 64 bits here, Python's integers any number of them.

[[noreturn]] void too_large() {
    throw Error(ExitCode::usage, {"the exported program computes a size that is too large",
                                  "the size needs more than 64 bits",
                                  "Use batches like those that the program was exported for"});
}

/// What `compute` stores, which says whether it has overflowed.
template <class Compute>
std::int64_t within_64_bits(Compute const& compute) {
    std::int64_t result = 0;
    if (compute(&result)) {
        too_large();
    }
    return result;
}

std::int64_t sum(std::int64_t a, std::int64_t b) {
    return within_64_bits([&](auto* result) { return __builtin_add_overflow(a, b, result); });
}
double sum(double a, double b) {
    return a + b;
}

std::int64_t difference(std::int64_t a, std::int64_t b) {
    return within_64_bits([&](auto* result) { return __builtin_sub_overflow(a, b, result); });
}
double difference(double a, double b) {
    return a - b;
}

std::int64_t product(std::int64_t a, std::int64_t b) {
    return within_64_bits([&](auto* result) { return __builtin_mul_overflow(a, b, result); });
}
double product(double a, double b) {
    return a * b;
}

/// The fraction of a real value is cut off.
std::int64_t to_whole(double value) {
    constexpr double limit = 9.2e18;
    if (!(std::fabs(value) < limit)) {
        too_large();
    }
    return static_cast<std::int64_t>(value);
}

std::int64_t floor_divided(std::int64_t value, std::int64_t by) {
    if (by == -1) { // whose remainder is computed by division, too
        return difference(0, value);
    }
    auto const quotient = value / by;
    return value % by != 0 && (value < 0) != (by < 0) ? quotient - 1 : quotient;
}

/// The same operator of whole numbers or, where one is not whole, of real ones.
template <class Operator>
std::function<c10::IValue(Values const&)> both(Operator const& apply) {
    return [apply](Values const& values) -> c10::IValue {
        auto const& [a, b] = std::tie(values.at(0), values.at(1));
        return is_whole(a) && is_whole(b) ? c10::IValue(apply(whole(a), whole(b)))
                                          : c10::IValue(apply(real(a), real(b)));
    };
}

using Table = std::map<std::string, std::function<c10::IValue(Values const&)>, std::less<>>;

Table const& table() {
    static Table const operators{
        {"add", both([](auto a, auto b) { return sum(a, b); })},
        {"sub", both([](auto a, auto b) { return difference(a, b); })},
        {"mul", both([](auto a, auto b) { return product(a, b); })},
        {"eq", both([](auto a, auto b) { return a == b; })},
        {"ne", both([](auto a, auto b) { return a != b; })},
        {"lt", both([](auto a, auto b) { return a < b; })},
        {"le", both([](auto a, auto b) { return a <= b; })},
        {"gt", both([](auto a, auto b) { return a > b; })},
        {"ge", both([](auto a, auto b) { return a >= b; })},
        {"sym_max", both([](auto a, auto b) { return std::max(a, b); })},
        {"sym_min", both([](auto a, auto b) { return std::min(a, b); })},
        {"floordiv",
         [](Values const& v) { return floor_divided(whole(v.at(0)), divisor(v.at(1))); }},
        {"mod",
         [](Values const& v) {
             auto const by = divisor(v.at(1));
             return by == -1 ? 0 : whole(v.at(0)) - floor_divided(whole(v.at(0)), by) * by;
         }},
        {"truediv", [](Values const& v) { return real(v.at(0)) / real(v.at(1)); }},
        {"pow",
         [](Values const& v) -> c10::IValue {
             auto const power = std::pow(real(v.at(0)), real(v.at(1)));
             bool const exact = is_whole(v[0]) && is_whole(v[1]) && whole(v[1]) >= 0;
             return exact ? c10::IValue(to_whole(std::round(power))) : c10::IValue(power);
         }},
        {"neg",
         [](Values const& v) -> c10::IValue {
             return is_whole(v.at(0)) ? c10::IValue(difference(0, whole(v[0])))
                                      : c10::IValue(-real(v[0]));
         }},
        {"pos", [](Values const& v) { return v.at(0); }},
        {"and_", [](Values const& v) { return v.at(0).toBool() && v.at(1).toBool(); }},
        {"or_", [](Values const& v) { return v.at(0).toBool() || v.at(1).toBool(); }},
        {"not_", [](Values const& v) { return !v.at(0).toBool(); }},
        {"sym_not", [](Values const& v) { return !v.at(0).toBool(); }},
        {"sym_ite", [](Values const& v) { return v.at(0).toBool() ? v.at(1) : v.at(2); }},
        {"sym_float", [](Values const& v) { return real(v.at(0)); }},
        {"sym_sqrt", [](Values const& v) { return std::sqrt(real(v.at(0))); }},
        {"sym_int", [](Values const& v) { return to_whole(real(v.at(0))); }},
        {"trunc", [](Values const& v) { return to_whole(real(v.at(0))); }},
        {"floor", [](Values const& v) { return to_whole(std::floor(real(v.at(0)))); }},
        {"ceil", [](Values const& v) { return to_whole(std::ceil(real(v.at(0)))); }}};
    return operators;
}

std::string last_name(std::string const& target) {
    return target.substr(target.rfind('.') + 1);
}

} // namespace

bool is_calculation(std::string const& target) {
    bool const is_python = target.starts_with("_operator.") || target.starts_with("math.") ||
                           target.starts_with("torch.sym_") ||
                           target.starts_with("torch.torch.sym_");
    return is_python && table().contains(last_name(target));
}

c10::IValue calculate(std::string const& target, std::vector<c10::IValue> const& values) {
    try {
        return table().find(last_name(target))->second(values);
    } catch (std::out_of_range const&) {
        throw Error(ExitCode::data,
                    {concat("the exported program calls ", target),
                     "the call has too few arguments, so the file is damaged",
                     "Copy the file again from its source, or export the model again"});
    } catch (c10::Error const&) {
        std::vector<std::string> types;
        for (auto const& value : values) {
            types.push_back(value.tagKind());
        }
        throw Error(ExitCode::data,
                    {concat("the exported program calls ", target),
                     concat("this version of Lockstep cannot evaluate this call with arguments of "
                            "the types ",
                            joined(types, ", ")),
                     "Remove this calculation from the model's forward method, and export the "
                     "model again"});
    }
}

} // namespace lockstep::program
