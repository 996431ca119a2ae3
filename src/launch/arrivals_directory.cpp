#include "arrivals_directory.hpp"

#include "base/arrival.hpp"
#include "base/host_facts.hpp"
#include "base/number.hpp"
#include "base/own_directory.hpp"
#include "base/own_file.hpp"
#include "base/partial_file.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace lockstep::launch {

namespace {

constexpr std::size_t random_digits = 16; ///< of `new_token`

/// The process of this host that has drawn a token.
std::optional<int> process_of(std::string const& token) {
    auto const front = concat(token_host(), "-");
    auto const parts = split(token.starts_with(front) ? token.substr(front.size()) : "", '-');
    bool const whole = parts.size() == 2 && parts[1].size() == random_digits &&
                       parts[1].find_first_not_of("0123456789abcdef") == std::string::npos;
    return whole ? number_of<int>(parts[0]) : std::nullopt;
}

/// What launches of this host, and of this user, have left that were killed.
void remove_stale(std::filesystem::path const& directory) {
    std::error_code failure;
    for (auto const& each : std::filesystem::directory_iterator(directory, failure)) {
        auto const process = process_of(each.path().filename().string());
        struct stat info {};
        bool const ours = ::lstat(each.path().c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
                          info.st_uid == ::geteuid();
        if (ours && process && !process_state(*process)) {
            std::filesystem::remove_all(each.path(), failure);
        }
    }
}

} // namespace

ArrivalsDirectory::ArrivalsDirectory(std::filesystem::path const& run, bool continues)
    : run_(std::filesystem::absolute(run)), path_(run_ / arrivals_name / new_token()) {
    std::error_code failure;
    made_run_ = !std::filesystem::exists(std::filesystem::symlink_status(run_, failure));
    if (continues && made_run_) {
        made_run_ = false;
        path_.clear();
        return;
    }
    auto const all = path_.parent_path();
    if (has_own_place(all)) {
        remove_stale(all);
    }
    try {
        make_own_directory(all);
        make_private_directory(path_);
    } catch (Error const&) {
        require_own_place(all); // that others have made meanwhile
        path_.clear();
    }
}

/// A run that has not begun leaves no directory behind. What was there before stays, whatever it
/// is: rmdir takes neither files nor links, which a run's directory on another file system may be.
ArrivalsDirectory::~ArrivalsDirectory() {
    if (path_.empty()) {
        return;
    }
    std::error_code failure;
    std::filesystem::remove_all(path_, failure);
    ::rmdir(path_.parent_path().c_str());
    if (made_run_) {
        ::rmdir(run_.c_str());
    }
}

} // namespace lockstep::launch
