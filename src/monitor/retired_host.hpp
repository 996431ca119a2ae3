#pragma once

#include <filesystem>
#include <string>

namespace lockstep::monitor {

/// Adds to the newest attempt's line in history.jsonl that its end has cost the job a host, and on
/// what evidence.
void record_retired(std::filesystem::path const& directory, std::string const& host,
                    std::string const& evidence);

} // namespace lockstep::monitor
