#pragma once

#include <filesystem>
#include <vector>

namespace lockstep::import {

/// A recording in one channel, in units of full scale.
struct Sound {
    int rate = 0;     ///< values per second
    int channels = 0; ///< of the file
    std::vector<float> values;
};

/// Reads a WAV file, or another that libsndfile knows; channels are averaged.
///
/// Throws  Error 66 or 65, with the file's name; 69 where this build has no libsndfile
Sound read_sound(std::filesystem::path const& path);

} // namespace lockstep::import
