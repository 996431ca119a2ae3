#include "lockstep/train/run_directory.hpp"

#include "lockstep/base/arrival.hpp"
#include "lockstep/base/clock.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/base/file.hpp"
#include "lockstep/base/text.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>

namespace lockstep::train {

namespace {
constexpr char const* lock_name = "lock";
constexpr double renewal_s = 5;
} // namespace

RunDirectory::RunDirectory(std::filesystem::path path, std::function<void()> const& waiting)
    : path_(std::move(path)) {
    make_directories(path_);
    auto const file = path_ / lock_name;
    lock_ = Descriptor(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (int const error_number = errno; !lock_.is_open()) {
        throw creation_error(concat("cannot write in ", path_.string()), path_, error_number);
    }
    // Of two starts at once on a host the lock lets one through. Between hosts, and where a file
    // system has no locks, the life tells.
    bool const held = ::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    life_.emplace(path_, held, renewal_s, waiting);
}

void RunDirectory::archive() const {
    std::filesystem::path target;
    auto stamp = utc_now();
    std::replace(stamp.begin(), stamp.end(), ':', '-');
    // Beside the directory, however it was written: "run/", ".".
    auto place = std::filesystem::absolute(path_).lexically_normal();
    place = place.has_filename() ? place : place.parent_path();
    target = place.string() + ".archived-" + stamp;
    make_directories(target);
    for (auto const& item : std::filesystem::directory_iterator(path_)) {
        auto const name = item.path().filename();
        if (name != lock_name && name != Life::file_name && name != arrivals_name) {
            rename_durably(item.path(), target / name);
        }
    }
}

void remove_partials(std::filesystem::path const& directory) {
    std::error_code none; // no directory, or a file that is gone meanwhile
    for (auto const& file : std::filesystem::directory_iterator(directory, none)) {
        auto const name = file.path().filename().string();
        bool const partial =
            name.ends_with(".partial") || name.find(".partial-") != std::string::npos;
        if (partial && file.is_regular_file(none)) {
            std::filesystem::remove(file.path(), none);
        }
    }
}

} // namespace lockstep::train
