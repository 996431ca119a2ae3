#pragma once

#include <filesystem>
#include <functional>

#include "image.hpp"

namespace lockstep::import {

/// Decodes a video's frames in the order in which they are shown, RGB of their own size.
///
/// Throws  Error 66 or 65, with the file's name; 69 where this build has no libav
void read_video(std::filesystem::path const& path, std::function<void(Image&&)> const& sink);

} // namespace lockstep::import
