#include "lockstep/base/error.hpp"

#include "image.hpp"

namespace lockstep::import {

Image decode_png(std::span<std::byte const>) {
    throw Error(ExitCode::unavailable,
                {"PNG files cannot be read", "this program was built without libpng",
                 "Install libpng (Debian: libpng-dev) and build again"});
}

} // namespace lockstep::import
