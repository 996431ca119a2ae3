#include "base/build_id.hpp"
#include "base/loader_reason.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <dlfcn.h>

#include "../media/decoders.hpp"
#include "sound.hpp"
#include "video.hpp"

namespace lockstep::import {

namespace {

constexpr char const* media_library = LOCKSTEP_MEDIA_LIBRARY;

/// libav and libsndfile bring 110 libraries. Linked with the program, each start of each rank would
/// load them, and look through them for every name of LibTorch.
media::Decoders const& load_decoders() {
    void* const library = ::dlopen(media_library, RTLD_NOW | RTLD_LOCAL);
    auto const* const decoders =
        library == nullptr
            ? nullptr
            : static_cast<media::Decoders const*>(::dlsym(library, "lockstep_media_decoders"));
    if (decoders == nullptr) {
        throw Error(ExitCode::unavailable,
                    {concat("cannot load ", media_library, ", which decodes recordings and videos"),
                     loader_reason(),
                     "Build and install the program again, together with its libraries"});
    }
    require_same_build(media_library, decoders->build_id, core_build_id());
    return *decoders;
}

media::Decoders const& decoders() {
    static media::Decoders const& loaded = load_decoders();
    return loaded;
}

} // namespace

void read_video(std::filesystem::path const& path, std::function<void(Image&&)> const& sink) {
    decoders().video(path, sink);
}

Sound read_sound(std::filesystem::path const& path) {
    return decoders().sound(path);
}

} // namespace lockstep::import
