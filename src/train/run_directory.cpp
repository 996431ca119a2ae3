#include "train/run_directory.hpp"

#include "base/arrival.hpp"
#include "base/awaited_lock.hpp"
#include "base/clock.hpp"
#include "base/file.hpp"
#include "base/notice.hpp"
#include "base/own_directory.hpp"
#include "base/own_file.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace lockstep::train {

namespace {
constexpr char const* lock_name = "lock";
constexpr double renewal_s = 5;
constexpr double look_again_s = 2;
/// What a run writes into its directory, and what `lockstep report` and `evaluate --worst-output`
/// write there of it. What else lies there is somebody else's, data perhaps.
constexpr std::array written_by_runs{
    "deck.ini", "metrics.jsonl", "history.jsonl", "log.txt", "tensorboard", "plots", "checkpoints",
    "best.h5",  "report.md",     "samples",       "flight",  "profile",     "worst"};
/// What it uses there besides, which stays when a run is archived.
constexpr std::array used_by_runs{"lease", arrivals_name};

/// What some work throws; nothing where it ends.
template <class Work>
std::optional<Error> error_of(Work const& work) noexcept {
    try {
        work();
    } catch (...) {
        return current_error();
    }
    return std::nullopt;
}
} // namespace

RunDirectory::RunDirectory(std::filesystem::path path, std::string continued,
                           std::function<void()> const& waiting)
    : path_(std::move(path)), continued_(std::move(continued)) {
    if (continued_.empty()) {
        take(waiting);
        return;
    }
    auto const failure = error_of([&] {
        require_usable();
        take(waiting);
        require_usable();
    });
    if (!failure) {
        return;
    }
    if (!error_of([&] { require_usable(); })) { // then it is not the disk's
        throw Error(*failure);
    }
    go_without(*failure);
}

/// Throws where the directory that the run has is not there, or cannot be written. One that was
/// unmounted is not made again: what is there then would be in the way of what comes back.
void RunDirectory::require_usable() const {
    auto const checkpoints = path_ / "checkpoints";
    auto const id = checkpoints / "id";
    if (!std::filesystem::exists(id) || trimmed(read_text(id)) != continued_) {
        throw Error(ExitCode::io, {concat("run directory ", path_.string(), " is not there"),
                                   "it was moved or unmounted, or another one is in its place",
                                   "Mount it again, or move it back"});
    }
    require_writable(checkpoints);
}

void RunDirectory::go_without(Error const& why) {
    absence_ = why;
    if (lease_) {
        return;
    }
    std::optional<Error> others;
    token_ = std::numeric_limits<std::int64_t>::max(); // nobody is known to be newer
    error_of([&] {
        others = claimed_by_others(path_);
        token_ = claimed_number(path_) + 1;
    });
    if (others) {
        throw Error(*others);
    }
    job_ = own_job_id();
}

void RunDirectory::require_ours() {
    std::scoped_lock const lock(mutex_);
    if (!lease_) {
        std::optional<Error> others;
        auto const failure = error_of([&] {
            others = claimed_by_others(path_);
            if (!others) {
                require_usable();
            }
        });
        if (failure) {
            throw Error(ExitCode::io,
                        {concat("run directory ", path_.string(), " cannot be used"),
                         concat(failure->text().what, ": ", failure->text().why),
                         "Make it writable again. Until then, the run's state is only in the "
                         "memory of its hosts, for attempts of the same job"});
        }
        if (others) {
            throw Error(*others);
        }
        take([] {});
        notice(concat("run directory ", path_.string(),
                      " can be written again: it gets records and checkpoints"));
    }
    lease_->require();
}

void RunDirectory::look_for_it() noexcept {
    if (absence_ && since_look_.seconds() > look_again_s) {
        since_look_.restart();
        error_of([&] { require_ours(); });
    }
}

void RunDirectory::take(std::function<void()> const& waiting) {
    make_directories(path_);
    for (auto const* const name : written_by_runs) {
        require_own_place(path_ / name);
    }
    for (auto const* const name : used_by_runs) {
        require_own_place(path_ / name);
    }
    // Of two starts at once on a host the lock lets one through. Between hosts, and where a file
    // system has no locks, the lease tells.
    lock_.reset(); // ours would be in the way
    lock_ = awaited_lock(path_ / lock_name, waiting);
    lease_.emplace(path_, lock_->is_held_elsewhere(), renewal_s, waiting);
    if (!absence_) { // else the run has long begun
        token_ = lease_->number();
        requeued_ = lease_->is_requeued();
        follows_ = lease_->follows();
        job_ = lease_->job();
    }
}

void RunDirectory::archive() const {
    std::filesystem::path target;
    // Beside the directory, however it was written: "run/", ".".
    auto place = std::filesystem::absolute(path_).lexically_normal();
    place = place.has_filename() ? place : place.parent_path();
    target = place.string() + ".archived-" + utc_for_names();
    make_own_directory(target);
    for (auto const* const name : written_by_runs) {
        if (std::filesystem::exists(path_ / name)) {
            rename_durably(path_ / name, target / name);
        }
    }
}

void remove_partials(std::filesystem::path const& directory) {
    std::error_code none; // no directory, or a file that is gone meanwhile
    for (auto const& file : std::filesystem::directory_iterator(directory, none)) {
        auto const name = file.path().filename().string();
        bool const partial =
            name.ends_with(".partial") || name.find(".partial-") != std::string::npos;
        if (partial && std::filesystem::is_regular_file(file.symlink_status(none))) {
            std::filesystem::remove(file.path(), none);
        }
    }
}

} // namespace lockstep::train
