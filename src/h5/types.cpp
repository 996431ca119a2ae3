#include "types.hpp"

#include "base/text.hpp"
#include "h5/element_type.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep::h5 {

namespace {

Handle copy_of(hid_t type) {
    return {check(H5Tcopy(type), Doing::planning, "H5Tcopy"), H5Tclose};
}

/// IEEE 754 binary16, as h5py writes it.
Handle half_type() {
    auto type = copy_of(H5T_IEEE_F32LE);
    check(H5Tset_fields(type.id(), 15, 10, 5, 0, 10), Doing::planning, "H5Tset_fields");
    check(H5Tset_size(type.id(), 2), Doing::planning, "H5Tset_size");
    check(H5Tset_ebias(type.id(), 15), Doing::planning, "H5Tset_ebias");
    return type;
}

} // namespace

Handle stored_type(Type type) {
    switch (type) {
    case Type::u8:
        return copy_of(H5T_STD_U8LE);
    case Type::i8:
        return copy_of(H5T_STD_I8LE);
    case Type::u16:
        return copy_of(H5T_STD_U16LE);
    case Type::u32:
        return copy_of(H5T_STD_U32LE);
    case Type::i16:
        return copy_of(H5T_STD_I16LE);
    case Type::i32:
        return copy_of(H5T_STD_I32LE);
    case Type::i64:
        return copy_of(H5T_STD_I64LE);
    case Type::u64:
        return copy_of(H5T_STD_U64LE);
    case Type::f16:
        return half_type();
    case Type::f32:
        return copy_of(H5T_IEEE_F32LE);
    case Type::f64:
        return copy_of(H5T_IEEE_F64LE);
    }
    throw Error(ExitCode::software,
                {concat("cannot store values of element type ", static_cast<int>(type), " in HDF5"),
                 "the program knows no such element type", "This is a bug; please report it"});
}

Handle text_type(std::size_t length) {
    Handle type{check(H5Tcopy(H5T_C_S1), Doing::planning, "H5Tcopy"), H5Tclose};
    // Fixed length: texts of variable length cannot go through MPI-IO.
    check(H5Tset_size(type.id(), std::max<std::size_t>(length, 1)), Doing::planning, "H5Tset_size");
    check(H5Tset_strpad(type.id(), H5T_STR_NULLPAD), Doing::planning, "H5Tset_strpad");
    check(H5Tset_cset(type.id(), H5T_CSET_UTF8), Doing::planning, "H5Tset_cset");
    return type;
}

namespace {

/// The numbers that an enumeration names: how others keep true and false.
Handle numbers_of(Id type) {
    return H5Tget_class(type) == H5T_ENUM
               ? Handle{check(H5Tget_super(type), Doing::reading, "H5Tget_super"), H5Tclose}
               : copy_of(type);
}

} // namespace

std::optional<Type> known_type(Id stored) {
    auto const numbers = numbers_of(stored);
    auto const type = numbers.id();
    for (auto const candidate : all_types) {
        if (H5Tequal(type, stored_type(candidate).id()) > 0) {
            return candidate;
        }
    }
    return std::nullopt;
}

std::optional<Type> swapped_type(Id stored) {
    auto const numbers = numbers_of(stored);
    auto const type = numbers.id();
    for (auto const candidate : all_types) {
        auto const swapped = stored_type(candidate);
        check(H5Tset_order(swapped.id(), H5T_ORDER_BE), Doing::planning, "H5Tset_order");
        if (H5Tequal(type, swapped.id()) > 0) {
            return candidate;
        }
    }
    return std::nullopt;
}

std::optional<Type> readable_type(Id stored) {
    auto const numbers = numbers_of(stored);
    auto const type = numbers.id();
    if (auto const own = known_type(type)) {
        return own;
    }
    if (auto const swapped = swapped_type(type)) {
        return swapped;
    }
    auto const bytes = H5Tget_size(type);
    if (H5Tget_class(type) == H5T_FLOAT) {
        return bytes <= 4 ? Type::f32 : Type::f64;
    }
    if (H5Tget_class(type) != H5T_INTEGER || bytes > 8) {
        return std::nullopt;
    }
    if (H5Tget_sign(type) == H5T_SGN_NONE) {
        return bytes == 1 ? Type::u8 : bytes == 2 ? Type::i32 : bytes <= 4 ? Type::i64 : Type::u64;
    }
    return bytes <= 2 ? Type::i16 : bytes <= 4 ? Type::i32 : Type::i64;
}

std::string shape_text(Shape const& shape) {
    std::vector<std::string> extents;
    for (auto const extent : shape) {
        extents.push_back(std::to_string(extent));
    }
    return concat("[", joined(extents, ", "), "]");
}

} // namespace lockstep::h5
