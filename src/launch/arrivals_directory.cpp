#include "arrivals_directory.hpp"

#include "base/arrival.hpp"
#include "base/host_facts.hpp"
#include "base/number.hpp"
#include "base/partial_file.hpp"
#include "base/process.hpp"
#include "base/text.hpp"

#include <unistd.h>

namespace lockstep::launch {

namespace {

/// What launches of this host have left that were killed.
void remove_stale(std::filesystem::path const& directory) {
    std::error_code failure;
    auto const front = concat(token_host(), "-");
    for (auto const& each : std::filesystem::directory_iterator(directory, failure)) {
        auto const name = each.path().filename().string();
        auto const token = name.starts_with(front) ? name.substr(front.size()) : std::string();
        auto const process = number_of<int>(token.substr(0, token.find('-')));
        if (process && !process_state(*process)) {
            std::filesystem::remove_all(each.path(), failure);
        }
    }
}

} // namespace

ArrivalsDirectory::ArrivalsDirectory(std::filesystem::path const& run)
    : run_(std::filesystem::absolute(run)), path_(run_ / arrivals_name / new_token()) {
    std::error_code failure;
    made_run_ = !std::filesystem::exists(std::filesystem::symlink_status(run_, failure));
    remove_stale(path_.parent_path());
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
