#include "h5/version.hpp"

#include "base/text.hpp"

#include <hdf5.h>

namespace lockstep::h5 {

std::string library_version() {
    unsigned major = 0;
    unsigned minor = 0;
    unsigned release = 0;
    H5get_libversion(&major, &minor, &release);
    return concat(major, ".", minor, ".", release);
}

} // namespace lockstep::h5
