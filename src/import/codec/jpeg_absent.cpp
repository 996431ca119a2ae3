#include "lockstep/base/error.hpp"

#include "image.hpp"

namespace lockstep::import {

Image decode_jpeg(std::span<std::byte const>) {
    throw Error(ExitCode::unavailable,
                {"JPEG files cannot be read", "this program was built without TurboJPEG",
                 "Install libjpeg-turbo (Debian: libturbojpeg0-dev) and build again"});
}

} // namespace lockstep::import
