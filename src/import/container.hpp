#pragma once

#include <cstdint>
#include <filesystem>

namespace lockstep::import {

/// How many bytes a video file should have according to its own headers: the Segment of Matroska
/// and WebM, the RIFF chunks of AVI, the boxes of MP4 and MOV. Decoders do not notice when a file
/// was cut between two frames.
///
/// Returns  0 for a file of another kind, or one that does not say
/// Throws   Error 74 when it cannot be read
std::uint64_t container_bytes(std::filesystem::path const& path);

} // namespace lockstep::import
