#include "schema.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <array>
#include <cmath>
#include <limits>

namespace lockstep::program {

namespace {

[[noreturn]] void unknown(std::string const& what, Json const& json) {
    throw Error(ExitCode::usage, {concat("the exported program has ", what, " ", json.dump()),
                                  "this version of Lockstep does not support it",
                                  "Change the model so that it uses only dense tensors of common "
                                  "types, then export the model again"});
}

} // namespace

c10::ScalarType scalar_type_of(Json const& json) {
    using Type = c10::ScalarType;
    constexpr std::array types{
        Type::Undefined,    Type::Byte,          Type::Char,  Type::Short,   Type::Int,
        Type::Long,         Type::Half,          Type::Float, Type::Double,  Type::ComplexHalf,
        Type::ComplexFloat, Type::ComplexDouble, Type::Bool,  Type::BFloat16};
    auto const number = json.get<std::size_t>();
    if (number == 0 || number >= types.size()) {
        unknown("the scalar type", json);
    }
    return types[number];
}

c10::Layout layout_of(Json const& json) {
    constexpr int strided = 7;
    if (json != strided) {
        unknown("the layout", json);
    }
    return c10::kStrided;
}

c10::MemoryFormat memory_format_of(Json const& json) {
    using Format = c10::MemoryFormat;
    constexpr std::array formats{Format::Contiguous, Format::ChannelsLast, Format::ChannelsLast3d,
                                 Format::Preserve};
    auto const number = json.get<std::size_t>();
    if (number < 1 || number > formats.size()) {
        unknown("the memory format", json);
    }
    return formats[number - 1];
}

double real_of(Json const& json) {
    if (!json.is_string()) {
        return json.get<double>();
    }
    auto const& text = json.get_ref<std::string const&>();
    if (text == "Infinity" || text == "-Infinity") {
        auto const infinity = std::numeric_limits<double>::infinity();
        return text.front() == '-' ? -infinity : infinity;
    }
    return std::numeric_limits<double>::quiet_NaN();
}

void damaged_program(std::string const& why) {
    throw Error(ExitCode::data, {"the exported program is damaged", why,
                                 "Copy the file again from its source, or export the model again"});
}

namespace {

Json::object_t::value_type const& only_member(Json const& json) {
    auto const& object = json.get_ref<Json::object_t const&>();
    if (object.empty()) {
        damaged_program("a union in it has no member");
    }
    return *object.begin();
}

} // namespace

std::string const& member_name(Json const& json) {
    return only_member(json).first;
}

Json const& member(Json const& json) {
    return only_member(json).second;
}

Size size_of(Json const& json) {
    if (json.contains("as_int")) {
        return {Size::Kind::fixed, json.at("as_int").get<std::int64_t>(), ""};
    }
    constexpr std::string_view begin = "Symbol('";
    auto const text = json.at("as_expr").at("expr_str").get<std::string>();
    auto const end = text.find('\'', begin.size());
    if (!text.starts_with(begin) || end == std::string::npos) {
        return {Size::Kind::expression, 0, ""};
    }
    return {Size::Kind::symbol, 0, text.substr(begin.size(), end - begin.size())};
}

std::vector<std::int64_t> fixed_sizes(Json const& json) {
    std::vector<std::int64_t> sizes;
    for (auto const& each : json) {
        auto const size = size_of(each);
        if (size.kind != Size::Kind::fixed) {
            damaged_program("a stored tensor has a symbolic size");
        }
        sizes.push_back(size.value);
    }
    return sizes;
}

} // namespace lockstep::program
