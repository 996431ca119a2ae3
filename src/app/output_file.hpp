#pragma once

#include "lockstep/config/deck.hpp"

#include <filesystem>

namespace lockstep::app {

/// Throws Error 73 when there is something of that name and `overwrite` does not allow to replace
/// it, or it is no file, such as a directory or a device; 64 for an empty name.
void require_free(std::filesystem::path const& output, bool overwrite);

/// Throws Error 73 when the directory that the output would be in does not exist.
void require_directory_of(std::filesystem::path const& output);

/// Throws Error 73 when the output is the input, or has the name of a checkpoint, from which a run
/// would resume, or is a run's best.h5.
void require_other_file(std::filesystem::path const& output, std::filesystem::path const& input);

/// Whose deck it is. What a file names may lie anywhere: its patterns are compared by name alone.
enum class DeckFrom { user, file };

/// Throws Error 73 when the output is a file that the deck names for data, models or teachers.
void require_not_named(std::filesystem::path const& output, config::Deck const& deck,
                       DeckFrom from);

} // namespace lockstep::app
