#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace lockstep::sim {

/// Zeros that others can read at any time, and after the process ended in any way: DIRECTORY/PID.
///
/// Throws  std::system_error
std::shared_ptr<void> mapped_file(std::string const& directory, std::size_t bytes);

} // namespace lockstep::sim
