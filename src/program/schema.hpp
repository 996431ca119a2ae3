#pragma once

#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

/// The JSON of an exported program, after torch/_export/serde/schema.py.
namespace lockstep::program {

using Json = nlohmann::json;

/// Throws  Error 65: the exported program is damaged, and why
[[noreturn]] void damaged_program(std::string const& why);

/// Numbers that stand for types in that JSON.
///
/// Throws  Error 64 for one that this program does not know
c10::ScalarType scalar_type_of(Json const& json);
c10::Layout layout_of(Json const& json);
c10::MemoryFormat memory_format_of(Json const& json);

/// A number, which may be written "Infinity" or "NaN".
double real_of(Json const& json);

/// A union: the name of its only member, and the member.
///
/// Throws  nlohmann::json::exception where it is not an object
std::string const& member_name(Json const& json);
Json const& member(Json const& json);

/// A size of a tensor: of one value, of a symbol's, or of an expression of symbols.
struct Size {
    enum class Kind { fixed, symbol, expression };
    Kind kind = Kind::fixed;
    std::int64_t value = 0; ///< of a fixed one
    std::string symbol;
};
Size size_of(Json const& json);

/// Sizes or strides that must all be fixed.
///
/// Throws  Error 65 where one is not
std::vector<std::int64_t> fixed_sizes(Json const& json);

} // namespace lockstep::program
