#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace lockstep::nn {

/// Calls take(name, bytes) for each record of an exported program's file, by name: its graphs and
/// its weights. The compiled step is left out: each host compiles its own from the same graph.
///
/// Throws  Error 66 for a missing file, 65 for one that is no exported program or is damaged
void for_records(std::filesystem::path const& file,
                 std::function<void(std::string const&, std::string_view)> const& take);

} // namespace lockstep::nn
