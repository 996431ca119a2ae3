#include "lockstep/base/error.hpp"

#include "decoders.hpp"

namespace lockstep::import::media {

void decode_video(std::filesystem::path const&, std::function<void(Image&&)> const&) {
    throw Error(ExitCode::unavailable,
                {"video files cannot be read", "this program was built without libav",
                 "Install libav (Debian: libavformat-dev libavcodec-dev libswscale-dev) and build "
                 "again, or import folders of frames"});
}

} // namespace lockstep::import::media
