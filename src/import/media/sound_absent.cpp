#include "lockstep/base/error.hpp"

#include "decoders.hpp"

namespace lockstep::import::media {

Sound decode_sound(std::filesystem::path const&) {
    throw Error(ExitCode::unavailable,
                {"recordings cannot be read", "this program was built without libsndfile",
                 "Install libsndfile (Debian: libsndfile1-dev) and build again"});
}

} // namespace lockstep::import::media
