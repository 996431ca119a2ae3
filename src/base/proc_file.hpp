#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace lockstep {

/// The text of a file of /proc or of a control group; empty when it cannot be read, since such
/// files come and go.
std::string proc_text(std::filesystem::path const& path);

/// The number after `name` in lines of "name number" or "name: number".
std::optional<std::uint64_t> proc_value(std::string const& text, std::string const& name);

} // namespace lockstep
