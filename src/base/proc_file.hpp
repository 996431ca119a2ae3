#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace lockstep {

/// What a file of /proc or of a control group says; empty when it cannot be read: they come and go.
std::string proc_text(std::filesystem::path const& path);

/// The number behind `name` in lines of "name number" or "name: number".
std::optional<std::uint64_t> proc_value(std::string const& text, std::string const& name);

} // namespace lockstep
