#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::serve {

struct ServeOptions {
    std::vector<std::filesystem::path> paths; ///< of runs, or of directories with runs
    int port = 0;                             ///< of 127.0.0.1; 0: a free one
    std::filesystem::path socket;             ///< instead of a port; empty: none
    std::optional<double> carbon{};           ///< grams of CO2 per kWh
};

/// Shows runs to this user's browser until SIGTERM, SIGINT or SIGHUP. One thread does everything:
/// it reads what the runs have written, in parts, and answers requests between them. Nothing is
/// ever written into a run's directory.
///
/// `announce` is called with the address once it can be opened.
///
/// Throws  Error 66, 64, 73 as `RunList` and `Listener`
void serve(ServeOptions const& options, std::function<void(std::string const&)> const& announce);

} // namespace lockstep::serve
