#include "lockstep/base/error.hpp"

#include "sound.hpp"

namespace lockstep::import {

Sound read_sound(std::filesystem::path const&) {
    throw Error(ExitCode::unavailable,
                {"recordings", "this program was built without libsndfile",
                 "Install libsndfile (Debian: libsndfile1-dev) and build again"});
}

} // namespace lockstep::import
