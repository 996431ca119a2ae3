#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace lockstep::train {

/// Notes with a run's checkpoints that those after this step may hold wrong values. An earlier note
/// of a lower step stays.
///
/// Throws  Error 73 or 74 where it cannot be written
void note_suspect_steps(std::filesystem::path const& checkpoints, std::int64_t after);

/// The step of the note; nothing: there is none.
///
/// Throws  Error 65 for a file that is no such note
std::optional<std::int64_t> suspect_steps(std::filesystem::path const& checkpoints);

/// Removes the note, when nothing of those steps is left.
void forget_suspect_steps(std::filesystem::path const& checkpoints);

} // namespace lockstep::train
