#include "fault.hpp"

#include "base/number.hpp"
#include "lockstep/base/error.hpp"

#include <hdf5.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

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

/// The errno of an MPI-IO call: "..., MPI error string is 'MPI_ERR_ACCESS: invalid access mode'".
int error_number_of_mpi(std::string const& text) {
    constexpr std::array<std::pair<std::string_view, int>, 6> numbers{
        {{"MPI_ERR_ACCESS", EACCES},
         {"MPI_ERR_NO_SUCH_FILE", ENOENT},
         {"MPI_ERR_READ_ONLY", EROFS},
         {"MPI_ERR_NO_SPACE", ENOSPC},
         {"MPI_ERR_QUOTA", EDQUOT},
         {"MPI_ERR_BAD_FILE", ENOENT}}};
    constexpr std::string_view mark = "MPI error string is '";
    auto const at = text.rfind(mark);
    for (auto const& [name, number] : numbers) {
        if (at != std::string::npos && text.compare(at + mark.size(), name.size(), name) == 0) {
            return number;
        }
    }
    return 0;
}

} // namespace

Fault take_fault() {
    Fault fault;
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, &fault.why);
    H5Eclear2(H5E_DEFAULT);
    fault.error_number = error_number_in(fault.why);
    if (fault.error_number == 0) {
        fault.error_number = error_number_of_mpi(fault.why);
    }
    if (fault.error_number != 0) {
        fault.why = system_text(fault.error_number);
    } else if (fault.why.empty()) {
        fault.why = "HDF5 gives no reason";
    }
    return fault;
}

} // namespace lockstep::h5
