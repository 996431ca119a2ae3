#include "base/build_id.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/build_id_value.hpp"

namespace lockstep {

std::string_view core_build_id() {
    return LOCKSTEP_BUILD_ID;
}

void require_same_build(std::string const& library, std::string_view its_id,
                        std::string_view program_id) {
    if (its_id != program_id) {
        throw Error(
            ExitCode::unavailable,
            {concat(library, " is from a different build than this program"),
             concat("its build id is ", its_id, ", but that of the program is ", program_id),
             "Build and install the program again, together with its libraries"});
    }
}

} // namespace lockstep
