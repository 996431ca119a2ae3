#pragma once

#include "lockstep/h5/storage.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::h5 {

/// All types, in the order of their values.
inline constexpr std::array all_types{Type::u8,  Type::i16, Type::i32, Type::i64,
                                      Type::u64, Type::f16, Type::f32, Type::f64,
                                      Type::i8,  Type::u16, Type::u32};

[[nodiscard]] std::size_t size_of(Type type);
[[nodiscard]] std::string name_of(Type type);
[[nodiscard]] std::optional<Type>
type_named(std::string const& name); ///< absent: not a type of ours

/// Throws  Error 65 where a shape, such as one from a damaged file, has more elements than can be
///         counted
[[nodiscard]] std::uint64_t elements(Shape const& shape);

} // namespace lockstep::h5
