#pragma once

#include <cstdint>
#include <filesystem>

namespace lockstep::train {

/// How `lockstep profile` asks a running job for a timeline: a file in the run's directory, which
/// rank 0 looks for and removes. Only who may write there can ask.
std::filesystem::path profile_request_file(std::filesystem::path const& run);

/// Asks for a timeline of so many steps.
///
/// Throws  Error 73 or 74
void request_profile(std::filesystem::path const& run, std::int64_t steps);

/// The steps that a timeline was asked for, once; 0: none, or by a file that is no request, or is
/// somebody else's, which is removed, too. Does not throw: a request is no reason to end a run.
std::int64_t take_profile_request(std::filesystem::path const& run) noexcept;

} // namespace lockstep::train
