#include "h5/element_type.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

namespace lockstep::h5 {

std::size_t size_of(Type type) {
    switch (type) {
    case Type::u8:
    case Type::i8:
        return 1;
    case Type::i16:
    case Type::u16:
    case Type::f16:
        return 2;
    case Type::i32:
    case Type::u32:
    case Type::f32:
        return 4;
    case Type::i64:
    case Type::u64:
    case Type::f64:
        return 8;
    }
    return 0;
}

std::string name_of(Type type) {
    constexpr std::array<char const*, all_types.size()> names{
        "u8", "i16", "i32", "i64", "u64", "f16", "f32", "f64", "i8", "u16", "u32"};
    return names.at(static_cast<std::size_t>(type));
}

std::optional<Type> type_named(std::string const& name) {
    for (auto const candidate : all_types) {
        if (name_of(candidate) == name) {
            return candidate;
        }
    }
    return std::nullopt;
}

std::uint64_t elements(Shape const& shape) {
    std::uint64_t count = 1;
    for (auto const extent : shape) {
        if (__builtin_mul_overflow(count, extent, &count)) {
            throw Error(
                ExitCode::data,
                {"a dataset has too many elements",
                 concat("their number does not fit into 64 bits (one dimension has the size ",
                        extent, "), so the file is damaged"),
                 "Copy the file again from its source, or create the file again"});
        }
    }
    return count;
}

} // namespace lockstep::h5
