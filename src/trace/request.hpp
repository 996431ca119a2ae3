#pragma once

#include <cstdint>
#include <filesystem>

namespace lockstep::trace {

/// How `lockstep profile` asks a running job for a timeline: a file in the run's directory, which
/// rank 0 looks for and removes. Only who may write there can ask.
std::filesystem::path request_file(std::filesystem::path const& run);

/// Asks for a timeline of `steps` steps.
///
/// Throws  Error 73 while another request waits for the run, or where the file cannot be made; 74
void ask_for_steps(std::filesystem::path const& run, std::int64_t steps);

/// The number of steps that a timeline was requested for, returned once. 0: none was requested, or
/// more than `max`, or the file is not a request or is somebody else's; such a file is removed,
/// too. Does not throw: a request is no reason to end a run.
std::int64_t take_request(std::filesystem::path const& run, std::int64_t max) noexcept;

} // namespace lockstep::trace
