#pragma once

#include "base/file.hpp"
#include "lockstep/base/error.hpp"

#include <filesystem>
#include <string>

namespace lockstep::checkpoint {

/// The dataset of a file of outputs, and the group of layers in int8.
inline constexpr char const* outputs_view = "outputs"; ///< [samples, outputs…]
inline constexpr char const* quantised_group = "quantised";
/// Notes of a file with layers in int8: "int8, calibrated by mse", and which layers its arrays
/// hold, in their order, a line each: "features.conv1.weight 16 1 3 3".
inline constexpr char const* quantised_note = "quantised";
inline constexpr char const* layers_note = "layers";

/// What a file with checksums is.
enum class Content { checkpoint, model, quantised, outputs, unknown };

/// Tells by the first bytes behind the checksums, so that a file that is cut off or damaged further
/// on is known, too; unknown where they are cut off or damaged themselves.
///
/// Throws  Error 74 when it cannot be read
Content content_of(File const& file);

/// "an int8 model"; of unknown ones, "a file of this program".
char const* name_of(Content content);

/// What to do about a damaged file: a sentence that says what it is, without its full stop.
std::string remedy_for(Content content);

/// The error for a file that is not the state of a run. `kind` says what it is instead; `use`,
/// which may be empty, what it is for.
Error not_a_checkpoint(std::filesystem::path const& path, std::string const& kind,
                       std::string const& use = {});

/// The error for a file of outputs where a model is wanted.
Error no_model_but_outputs(std::filesystem::path const& path);

} // namespace lockstep::checkpoint
