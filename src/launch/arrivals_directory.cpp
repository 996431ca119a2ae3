#include "arrivals_directory.hpp"

#include "base/arrival.hpp"
#include "base/host_facts.hpp"
#include "base/text.hpp"

#include <unistd.h>

namespace lockstep::launch {

ArrivalsDirectory::ArrivalsDirectory(std::filesystem::path const& run)
    : run_(std::filesystem::absolute(run)),
      path_(run_ / arrivals_name / concat(own_host(), "-", ::getpid())) {
    std::error_code failure;
    made_run_ = !std::filesystem::exists(std::filesystem::symlink_status(run_, failure));
    std::filesystem::remove_all(path_, failure);
    std::filesystem::create_directories(path_, failure);
}

/// A run that has not begun leaves no directory behind. What was there before stays, whatever it
/// is: rmdir takes neither files nor links, which a run's directory on another file system may be.
ArrivalsDirectory::~ArrivalsDirectory() {
    std::error_code failure;
    std::filesystem::remove_all(path_, failure);
    ::rmdir(path_.parent_path().c_str());
    if (made_run_) {
        ::rmdir(run_.c_str());
    }
}

} // namespace lockstep::launch
