#include "conversion.hpp"

#include "base/text.hpp"
#include "h5/element_type.hpp"
#include "h5/file.hpp"
#include "lockstep/base/error.hpp"

#include <hdf5.h>

#include <cmath>
#include <cstring>

#include "fault.hpp"
#include "property_list.hpp"

namespace lockstep::h5 {

namespace {

/// Tells an infinity from a float64 that does not fit float32: HDF5 says the same of both.
bool is_infinity(Id type, void const* value) {
    double number = 0;
    if (H5Tequal(type, H5T_NATIVE_DOUBLE) <= 0) {
        return false;
    }
    std::memcpy(&number, value, sizeof number);
    return std::isinf(number);
}

H5T_conv_ret_t end_where_lost(H5T_conv_except_t what, hid_t from, hid_t into, void* value, void*,
                              void* lost) {
    bool const to_real = H5Tget_class(into) == H5T_FLOAT;
    bool const out_of_range = what == H5T_CONV_EXCEPT_RANGE_HI || what == H5T_CONV_EXCEPT_RANGE_LOW;
    bool const not_finite =
        what == H5T_CONV_EXCEPT_PINF || what == H5T_CONV_EXCEPT_NINF || what == H5T_CONV_EXCEPT_NAN;
    bool const is_lost = to_real ? out_of_range && !is_infinity(from, value)
                                 : out_of_range || not_finite || what == H5T_CONV_EXCEPT_TRUNCATE;
    *static_cast<bool*>(lost) = is_lost;
    return is_lost ? H5T_CONV_ABORT : H5T_CONV_UNHANDLED;
}

} // namespace

Conversion::Conversion() : list_(property_list(H5P_DATASET_XFER)) {
    check(H5Pset_type_conv_cb(list_.id(), end_where_lost, &lost_), Doing::planning,
          "H5Pset_type_conv_cb");
}

void Conversion::require_fit(std::string const& dataset, Type type) const {
    if (lost_) {
        static_cast<void>(take_fault());
        throw Error(ExitCode::data,
                    {dataset, concat("one of its values does not fit ", name_of(type)),
                     "Choose a type that can hold all values, or correct the data"});
    }
}

} // namespace lockstep::h5
