#pragma once

#include <string>
#include <vector>

#include "choice.hpp"

namespace lockstep::launch {

/// A directory with the job scripts: of the installation, or of the sources around the build.
///
/// Throws  Error 66 where there is none
std::string script_directory();

/// The job script that `choice.submit` asks for: resources, and the scripts of the program, which
/// put the job back when it was interrupted.
std::string job_script(LaunchChoice const& choice);

/// Where it is written: beside the run's directory.
std::string job_script_path(LaunchChoice const& choice);

/// Words as a shell would take them back.
std::string shell_line(std::vector<std::string> const& words);

} // namespace lockstep::launch
