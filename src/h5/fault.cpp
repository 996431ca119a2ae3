#include "fault.hpp"

#include "lockstep/base/error.hpp"
#include "lockstep/base/number.hpp"

#include <hdf5.h>

namespace lockstep::h5 {

namespace {

// The first entry of a walk upwards is where the fault arose.
herr_t keep_first(unsigned number, H5E_error2_t const* entry, void* into) {
    if (number == 0 && entry->desc != nullptr) {
        *static_cast<std::string*>(into) = entry->desc;
    }
    return 0;
}

/// HDF5 tells of a refused system call as "..., errno = 28, error message = 'No space left on
/// device', ...", after the file's name, which may hold anything.
int error_number_in(std::string const& text) {
    constexpr std::string_view mark = ", errno = ";
    auto const at = text.rfind(mark);
    if (at == std::string::npos) {
        return 0;
    }
    auto const begin = at + mark.size();
    return number_of<int>(text.substr(begin, text.find(',', begin) - begin)).value_or(0);
}

} // namespace

Fault take_fault() {
    Fault fault;
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, &fault.why);
    H5Eclear2(H5E_DEFAULT);
    fault.error_number = error_number_in(fault.why);
    if (fault.error_number != 0) {
        fault.why = system_text(fault.error_number);
    } else if (fault.why.empty()) {
        fault.why = "HDF5 gives no reason";
    }
    return fault;
}

} // namespace lockstep::h5
