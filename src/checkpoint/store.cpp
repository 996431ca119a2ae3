#include "lockstep/checkpoint/store.hpp"

#include "lockstep/base/clock.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/base/file.hpp"
#include "lockstep/base/number.hpp"
#include "lockstep/base/text.hpp"
#include "lockstep/checkpoint/verify.hpp"
#include "lockstep/comm/agree.hpp"
#include "lockstep/comm/collectives.hpp"

#include <algorithm>
#include <functional>
#include <span>
#include <string_view>
#include <system_error>

namespace lockstep::checkpoint {

namespace {

constexpr std::string_view prefix = "step-";
constexpr std::string_view suffix = ".h5";

/// The step in a name such as "step-00001200.h5".
std::optional<std::int64_t> step_of(std::string_view name) {
    if (!name.starts_with(prefix) || !name.ends_with(suffix)) {
        return std::nullopt;
    }
    auto const digits = name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
    auto const step = number_of<std::int64_t>(digits);
    return step && *step >= 0 ? step : std::nullopt;
}

bool is_partial(std::string_view name) {
    auto const end = name.find(".partial-");
    return end != std::string_view::npos && step_of(name.substr(0, end)).has_value();
}

Error none_good(std::filesystem::path const& directory, std::vector<std::string> const& reasons) {
    return {ExitCode::data,
            {concat("no checkpoint in ", directory.string(), " is intact"), joined(reasons, "; "),
             "Restore one from a copy, or start anew with --checkpoint.resume none"}};
}

std::string reason_of(std::filesystem::path const& path, std::string const& why) {
    return concat(path.filename().string(), ": ", why);
}

void copy_verified(std::filesystem::path const& from, std::filesystem::path const& to) {
    auto const source = File::open_read(from);
    auto const copy = File::create(to);
    auto const bytes = source.size();
    copy.claim_space(bytes);
    std::vector<std::byte> chunk(std::size_t{16} << 20);
    for (std::uint64_t at = 0; at < bytes; at += chunk.size()) {
        auto const part = std::span(chunk).first(std::min<std::size_t>(chunk.size(), bytes - at));
        source.read_at(at, part);
        copy.write_at(at, part);
    }
    copy.sync();
    if (auto const damages = verify(to); !damages.empty()) {
        throw Error(ExitCode::io,
                    {concat("the copy ", to.string()), damages.front().what, "Check both disks"});
    }
}

} // namespace

Store::Store(std::filesystem::path directory, int keep, std::function<void()> still_ours,
             std::filesystem::path local)
    : directory_(std::move(directory)), keep_(std::max(keep, 1)),
      still_ours_(std::move(still_ours)), local_(std::move(local)),
      made_(std::filesystem::file_time_type::clock::now()) {}

std::filesystem::path Store::path_for(std::int64_t step) const {
    auto const digits = std::to_string(step);
    std::string const zeros(digits.size() < 8 ? 8 - digits.size() : 0, '0');
    return directory_ / concat(prefix, zeros, digits, suffix);
}

std::vector<Entry> Store::list() const {
    std::vector<Entry> entries;
    if (!std::filesystem::is_directory(directory_)) {
        return entries;
    }
    for (auto const& file : std::filesystem::directory_iterator(directory_)) {
        auto const step = step_of(file.path().filename().string());
        if (step && path_for(*step).filename() == file.path().filename()) {
            entries.push_back({*step, file.path()});
        }
    }
    std::sort(entries.begin(), entries.end(),
              [](Entry const& a, Entry const& b) { return a.step > b.step; });
    return entries;
}

std::optional<Found> Store::newest_good(comm::Communicator const& comm) const {
    std::vector<std::int64_t> steps; // doubled, and one more for those of the local directory
    comm::agree(comm, "listing the checkpoints", [&] {
        if (comm.is_root()) {
            for (auto const& entry : list()) {
                steps.push_back(2 * entry.step);
            }
            for (auto const& entry : Store(local_, keep_).list()) {
                steps.push_back(2 * entry.step + 1); // the faster one of two
            }
            std::ranges::sort(steps, std::greater());
        }
    });
    // Rank 0's list counts: on other hosts the directory may be seen a little later.
    auto count = static_cast<std::int64_t>(steps.size());
    comm::broadcast(comm, std::span(&count, 1));
    steps.resize(static_cast<std::size_t>(count));
    comm::broadcast(comm, std::span(steps));

    Found found;
    for (auto const step : steps) {
        found.step = step / 2;
        found.path = step % 2 == 0 ? path_for(step / 2) : Store(local_, keep_).path_for(step / 2);
        try {
            verify_together(comm, found.path);
            return found;
        } catch (AgreedError const& error) {
            found.skipped.push_back(reason_of(found.path, error.text().why));
        }
    }
    if (steps.empty()) {
        return std::nullopt;
    }
    comm::agree(comm, "looking for a checkpoint",
                [&] { throw none_good(directory_, found.skipped); });
    return std::nullopt;
}

Written Store::save(comm::Communicator const& comm, Snapshot const& snapshot, std::int64_t step,
                    std::string const& attempt) const {
    comm::agree(comm, "making the checkpoint directory", [&] {
        if (comm.is_root()) {
            make_directories(directory_);
        }
    });
    auto const written = local_.empty()
                             ? write(comm, snapshot, path_for(step), attempt, still_ours_)
                             : save_in_two_levels(comm, snapshot, step, attempt);
    comm::agree(comm, "removing old checkpoints", [&] {
        if (comm.is_root()) {
            if (still_ours_) {
                still_ours_();
            }
            remove_beyond(keep_, step);
            remove_stale_partials(attempt);
        }
    });
    return written;
}

Written Store::save_in_two_levels(comm::Communicator const& comm, Snapshot const& snapshot,
                                  std::int64_t step, std::string const& attempt) const {
    Stopwatch const watch;
    auto written = Store(local_, keep_, still_ours_).save(comm, snapshot, step, attempt);
    auto const path = path_for(step);
    comm::agree(comm, "copying the checkpoint", [&] {
        if (comm.is_root()) {
            auto const partial = partial_path(path, attempt);
            try {
                copy_verified(written.path, partial);
                if (still_ours_) {
                    still_ours_();
                }
                rename_durably(partial, path);
            } catch (...) {
                std::error_code ignored; // the failure that brought us here is the one to tell
                std::filesystem::remove(partial, ignored);
                throw;
            }
        }
    });
    written.path = path;
    written.seconds = watch.seconds();
    return written;
}

std::vector<std::filesystem::path> Store::prune(int keep) const {
    if (keep < 1) {
        throw Error(ExitCode::usage, {concat("keep = ", keep), "at least one checkpoint must stay",
                                      "Give a number of 1 or more"});
    }
    auto const entries = list();
    if (entries.size() <= static_cast<std::size_t>(keep)) {
        return {};
    }
    std::vector<std::string> reasons;
    for (auto const& entry : entries) {
        auto const damages = verify(entry.path);
        if (damages.empty()) {
            return remove_beyond(keep, entry.step);
        }
        reasons.push_back(reason_of(entry.path, damages.front().what));
    }
    throw none_good(directory_, reasons);
}

std::vector<std::filesystem::path> Store::remove_beyond(int keep, std::int64_t good_step) const {
    std::vector<std::filesystem::path> removed;
    auto const entries = list();
    for (auto i = static_cast<std::size_t>(keep); i < entries.size(); ++i) {
        if (entries[i].step != good_step && std::filesystem::remove(entries[i].path)) {
            removed.push_back(entries[i].path);
        }
    }
    return removed;
}

void Store::remove_stale_partials(std::string const& attempt) const {
    for (auto const& file : std::filesystem::directory_iterator(directory_)) {
        auto const name = file.path().filename().string();
        std::error_code gone; // by another process, meanwhile
        // Another life of this job may still be writing: its file is newer than this store.
        if (is_partial(name) && !name.ends_with(".partial-" + attempt) &&
            file.last_write_time(gone) < made_ && !gone) {
            std::filesystem::remove(file.path());
        }
    }
}

} // namespace lockstep::checkpoint
