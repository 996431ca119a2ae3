#pragma once

#include <filesystem>
#include <functional>

#include "../codec/image.hpp"
#include "../codec/sound.hpp"

namespace lockstep::import::media {

/// As read_video() of codec/video.hpp.
void decode_video(std::filesystem::path const& path, std::function<void(Image&&)> const& sink);

/// As read_sound() of codec/sound.hpp.
Sound decode_sound(std::filesystem::path const& path);

/// What liblockstep_media exports as the symbol lockstep_media_decoders.
struct Decoders {
    char const* build_id;
    decltype(&decode_video) video;
    decltype(&decode_sound) sound;
};

} // namespace lockstep::import::media
