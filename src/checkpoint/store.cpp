#include "checkpoint/store.hpp"

#include "base/clock.hpp"
#include "base/file.hpp"
#include "base/own_directory.hpp"
#include "base/own_file.hpp"
#include "base/partial_file.hpp"
#include "base/text.hpp"
#include "checkpoint/reader.hpp"
#include "checkpoint/step_name.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/checkpoint/verify.hpp"

#include <algorithm>
#include <functional>
#include <span>
#include <string_view>
#include <system_error>

namespace lockstep::checkpoint {

namespace {

Error none_good(std::filesystem::path const& directory, std::vector<std::string> const& reasons) {
    return {ExitCode::data,
            {concat("no checkpoint in ", directory.string(), " is intact"), joined(reasons, "; "),
             "Copy one back from a backup, or start over with --checkpoint.resume none"}};
}

std::string reason_of(std::filesystem::path const& path, Error const& error) {
    return concat(path.filename().string(), ": ", error.text().why);
}

void copy_verified(std::filesystem::path const& from, std::filesystem::path const& to,
                   MakeRoom const& make_room) {
    auto const source = File::open_read(from);
    auto const bytes = source.size();
    try_space(to, bytes, make_room);
    auto const copy = File::open_write(to);
    std::vector<std::byte> chunk(std::size_t{16} << 20);
    for (std::uint64_t at = 0; at < bytes; at += chunk.size()) {
        auto const part = std::span(chunk).first(std::min<std::size_t>(chunk.size(), bytes - at));
        source.read_at(at, part);
        copy.write_at(at, part);
    }
    copy.sync();
    if (auto const damages = verify(to); !damages.empty()) {
        throw Error(ExitCode::io,
                    {concat("the copy of ", from.string(), " to ", to.string(), " is damaged"),
                     damages.front().what, "Check the disks of both files"});
    }
}

} // namespace

std::shared_ptr<Reader const> reader_of(Found const& found) {
    return found.held ? found.held : std::make_shared<Reader const>(found.file);
}

Store::Store(std::filesystem::path directory, int keep, std::function<void()> still_ours,
             std::filesystem::path local)
    : directory_(std::move(directory)), keep_(std::max(keep, 1)),
      still_ours_(std::move(still_ours)), local_(std::move(local)) {}

std::filesystem::path Store::path_for(std::int64_t step) const {
    return directory_ / name_of_step(step);
}

std::vector<StoredCheckpoint> Store::list() const {
    std::vector<StoredCheckpoint> entries;
    if (!std::filesystem::is_directory(directory_)) {
        return entries;
    }
    for (auto const& file : std::filesystem::directory_iterator(directory_)) {
        auto const step = step_of_name(file.path().filename().string());
        if (step && path_for(*step).filename() == file.path().filename()) {
            entries.push_back({*step, file.path()});
        }
    }
    std::sort(entries.begin(), entries.end(),
              [](StoredCheckpoint const& a, StoredCheckpoint const& b) { return a.step > b.step; });
    return entries;
}

bool Store::holds(std::filesystem::path const& file) const {
    std::error_code none; // no such file, or no such directory
    auto const own = [&](std::filesystem::path const& directory) {
        return step_of_name(file.filename().string()).has_value() &&
               std::filesystem::equivalent(directory / file.filename(), file, none);
    };
    return own(directory_) || (!local_.empty() && own(local_));
}

std::int64_t Store::set_aside(std::int64_t step, std::string const& folder) const {
    std::int64_t moved = 0;
    for (auto const& entry : list()) {
        if (entry.step > step) {
            if (still_ours_) {
                still_ours_();
            }
            make_own_directory(directory_ / folder);
            rename_durably(entry.path, directory_ / folder / entry.path.filename());
            ++moved;
        }
    }
    return local_.empty() ? moved
                          : moved + Store(local_, keep_, still_ours_).set_aside(step, folder);
}

std::optional<Found> Store::newest_good(comm::Communicator const& comm) const {
    std::vector<std::int64_t> steps; // doubled, and one more for those of the local directory
    std::vector<std::string> skipped;
    auto const add = [&](StoredCheckpoint const& entry, std::int64_t code,
                         std::string const& distrusted) {
        if (distrusted.empty()) {
            steps.push_back(code);
        } else {
            skipped.push_back(concat(entry.path.string(), ": ", distrusted));
        }
    };
    comm::agree(comm, "listing the checkpoints", [&] {
        if (comm.is_root()) {
            for (auto const& entry : list()) {
                add(entry, 2 * entry.step, third_person(entry.path, directory_));
            }
            for (auto const& entry : Store(local_, keep_).list()) { // the faster one of two
                add(entry, 2 * entry.step + 1, distrust(entry.path));
            }
            std::ranges::sort(steps, std::greater());
        }
    });
    // Rank 0's list counts: on other hosts the directory may be seen a little later.
    std::vector<std::int64_t> counts{static_cast<std::int64_t>(steps.size()),
                                     static_cast<std::int64_t>(skipped.size())};
    comm::broadcast(comm, std::span(counts));
    steps.resize(static_cast<std::size_t>(counts[0]));
    comm::broadcast(comm, std::span(steps));

    for (auto const step : steps) {
        auto const path =
            step % 2 == 0 ? path_for(step / 2) : Store(local_, keep_).path_for(step / 2);
        try {
            auto const file = verify_together(comm, path);
            comm::agree(comm, "reading a checkpoint's record", [&] {
                if (comm.is_root()) {
                    Reader const reader(file); // it is the checkpoint that its name says
                }
            });
            return Found{step / 2, file, skipped};
        } catch (AgreedError const& error) {
            skipped.push_back(reason_of(path, error));
        }
    }
    if (counts[0] + counts[1] == 0) {
        return std::nullopt;
    }
    comm::agree(comm, "looking for a checkpoint", [&] { throw none_good(directory_, skipped); });
    return std::nullopt;
}

namespace {

/// A run's directory that was moved, or whose disk was unmounted, is not made again: what is there
/// then would be in the way of what comes back.
void require_home(std::filesystem::path const& directory) {
    auto const home = std::filesystem::absolute(directory).parent_path();
    if (!std::filesystem::is_directory(home)) {
        throw Error(ExitCode::io, {concat("directory ", home.string(), " is gone"),
                                   "the directory was moved or unmounted",
                                   "Mount the directory again, or move it back. The run continues, "
                                   "and writes its next checkpoint there"});
    }
}

} // namespace

Written Store::save(comm::Communicator const& comm, Snapshot const& snapshot, std::int64_t step,
                    std::string const& attempt) const {
    comm::agree(comm, "making the checkpoint directory", [&] {
        if (comm.is_root()) {
            require_home(directory_);
            if (still_ours_) {
                still_ours_();
            }
            make_own_directory(directory_);
        }
    });
    auto written = in_room(comm, [&](auto const& make_room) {
        return local_.empty()
                   ? write(comm, snapshot, path_for(step), attempt, still_ours_, make_room)
                   : save_in_two_levels(comm, snapshot, step, attempt, make_room);
    });
    comm::agree(comm, "removing old checkpoints", [&] {
        if (comm.is_root()) {
            if (still_ours_) {
                still_ours_();
            }
            remove_beyond(keep_, step);
        }
    });
    return written;
}

/// What `work` does with a function that makes room; what was given up for it is told, whether it
/// succeeds or not.
Written Store::in_room(comm::Communicator const& comm,
                       std::function<Written(MakeRoom const&)> const& work) const {
    std::vector<std::string> given_up;
    auto const make_room = [&](std::uint64_t bytes) {
        auto path = give_up_oldest(bytes);
        bool const has_made_room = !path.empty();
        if (has_made_room) {
            given_up.push_back(std::move(path));
        }
        return has_made_room;
    };
    try {
        auto written = work(make_room);
        written.given_up.insert(written.given_up.end(), given_up.begin(), given_up.end());
        return written;
    } catch (AgreedError const& failure) {
        auto removed = joined(given_up, ", ");
        comm::broadcast_text(comm, removed, 0);
        if (removed.empty()) {
            throw;
        }
        auto text = failure.text();
        text.why += concat(" (although room was made by removing ", removed, ")");
        throw AgreedError(failure.code(), text, failure.rank(), failure.cause());
    }
}

std::string Store::give_up_oldest(std::uint64_t bytes) const {
    if (still_ours_) {
        still_ours_();
    }
    auto entries = files();
    auto const kept = std::ranges::find_if(entries, [](StoredCheckpoint const& entry) {
        return !comm::failure_of([&] { Reader const reader(entry.path); });
    });
    if (kept == entries.end()) {
        return {};
    }
    entries.erase(kept);
    auto room = free_space(directory_);
    for (auto const& entry : entries) {
        room += std::filesystem::file_size(entry.path);
    }
    if (entries.empty() || room < bytes) {
        return {};
    }
    std::filesystem::remove(entries.back().path);
    return entries.back().path.string();
}

Written Store::save_in_two_levels(comm::Communicator const& comm, Snapshot const& snapshot,
                                  std::int64_t step, std::string const& attempt,
                                  MakeRoom const& make_room) const {
    Stopwatch const watch;
    auto written = Store(local_, keep_, still_ours_).save(comm, snapshot, step, attempt);
    auto const path = path_for(step);
    comm::agree(comm, "copying the checkpoint", [&] {
        if (comm.is_root()) {
            PartialFile partial(partial_path(path, attempt));
            copy_verified(written.path, partial.path(), make_room);
            if (still_ours_) {
                still_ours_();
            }
            partial.rename(path);
        }
    });
    written.path = path;
    written.seconds = watch.seconds();
    return written;
}

std::vector<std::filesystem::path> Store::prune(int keep) const {
    if (keep < 1) {
        throw Error(ExitCode::usage, {concat("keep = ", keep), "at least one checkpoint must stay",
                                      "Set the number of checkpoints to keep to 1 or more"});
    }
    auto const entries = files();
    if (entries.size() <= static_cast<std::size_t>(keep)) {
        return {};
    }
    std::vector<std::string> reasons;
    for (auto const& entry : entries) {
        try {
            Reader const reader(entry.path);
        } catch (Error const& error) {
            reasons.push_back(reason_of(entry.path, error));
            continue;
        }
        return remove_beyond(keep, entry.step);
    }
    throw none_good(directory_, reasons);
}

/// What is no file, or was put there by a third person, is neither counted nor removed.
std::vector<StoredCheckpoint> Store::files() const {
    auto entries = list();
    std::erase_if(entries, [this](StoredCheckpoint const& entry) {
        std::error_code failure; // such as a loop of links
        return !std::filesystem::is_regular_file(entry.path, failure) ||
               !third_person(entry.path, directory_).empty();
    });
    return entries;
}

std::vector<std::filesystem::path> Store::remove_beyond(int keep, std::int64_t good_step) const {
    std::vector<std::filesystem::path> removed;
    auto const entries = files();
    for (auto i = static_cast<std::size_t>(keep); i < entries.size(); ++i) {
        auto const& path = entries[i].path;
        std::error_code failure;
        if (entries[i].step != good_step && std::filesystem::remove(path, failure)) {
            removed.push_back(path);
        }
        if (failure) {
            throw system_error(concat("cannot remove ", path.string()), failure.value(),
                               "Check the permissions of its directory");
        }
    }
    return removed;
}

} // namespace lockstep::checkpoint
