#pragma once

#include "import/label_file.hpp"
#include "import/source.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace lockstep::import {

struct VideoImport {
    std::filesystem::path source{};
    LabelFile labels{};
    std::string split_by{}; ///< as for images; clips of a video always stay together
    std::uint64_t frames = 17;
    std::uint64_t stride = 0; ///< frames from the start of a clip to that of the next; 0: `frames`
    std::uint64_t width = 256;
    std::uint64_t height = 256;
    bool gray = false;
};

/// Clips of video files, or of folders with a PNG or JPEG file for each frame, in a folder for each
/// class or listed in a file. Samples are u8, [3, frames, height, width] or [1, …].
std::unique_ptr<ImportSource> video_source(VideoImport const& options);

} // namespace lockstep::import
