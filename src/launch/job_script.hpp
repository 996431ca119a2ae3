#pragma once

#include <string>
#include <vector>

#include "choice.hpp"

namespace lockstep::launch {

/// A directory with the job scripts: of the installation, or of the sources around the build.
///
/// Throws  Error 66 where there is none
std::string script_directory();

/// The job script that `choice.submit` asks for: resources, and the program's scripts, which
/// requeue the job when it was interrupted.
std::string job_script(LaunchChoice const& choice);

/// The path that it is written to, next to the run's directory.
std::string job_script_path(LaunchChoice const& choice);

/// Words quoted so that a shell reads them back.
std::string shell_line(std::vector<std::string> const& words);

} // namespace lockstep::launch
