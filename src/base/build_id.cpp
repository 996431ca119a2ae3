#include "lockstep/base/build_id.hpp"

#include "lockstep/base/error.hpp"
#include "lockstep/base/text.hpp"

#include "build_id.hpp"

namespace lockstep {

void require_core_build(std::string_view build_id) {
    if (build_id != LOCKSTEP_BUILD_ID) {
        throw Error(ExitCode::unavailable,
                    {"liblockstep_core is of another build than this program",
                     concat("its build id is ", LOCKSTEP_BUILD_ID, ", the program's ", build_id),
                     "Build and install the program and its libraries together"});
    }
}

} // namespace lockstep
