#include "train/run_directory.hpp"

#include "base/arrival.hpp"
#include "base/awaited_lock.hpp"
#include "base/clock.hpp"
#include "base/file.hpp"
#include "base/own_directory.hpp"
#include "base/own_file.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <array>

namespace lockstep::train {

namespace {
constexpr char const* lock_name = "lock";
constexpr double renewal_s = 5;
/// What a run writes into its directory, and what `lockstep report` and `evaluate --worst-output`
/// write there of it. What else lies there is somebody else's, data perhaps.
constexpr std::array written_by_runs{
    "deck.ini", "metrics.jsonl", "history.jsonl", "log.txt", "tensorboard", "plots", "checkpoints",
    "best.h5",  "report.md",     "samples",       "flight",  "profile",     "worst"};
/// What it uses there besides, which stays when a run is archived.
constexpr std::array used_by_runs{"lease", arrivals_name};
} // namespace

RunDirectory::RunDirectory(std::filesystem::path path, std::function<void()> const& waiting)
    : path_(std::move(path)) {
    make_directories(path_);
    for (auto const* const name : written_by_runs) {
        require_own_place(path_ / name);
    }
    for (auto const* const name : used_by_runs) {
        require_own_place(path_ / name);
    }
    // Of two starts at once on a host the lock lets one through. Between hosts, and where a file
    // system has no locks, the lease tells.
    lock_ = awaited_lock(path_ / lock_name, waiting);
    lease_.emplace(path_, lock_->is_held_elsewhere(), renewal_s, waiting);
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
