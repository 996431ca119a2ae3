#pragma once

#include "checkpoint/reader.hpp"
#include "checkpoint/writer.hpp"
#include "lockstep/checkpoint/verify.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::checkpoint {

/// A checkpoint by its name; it may be damaged.
struct StoredCheckpoint {
    std::int64_t step = 0;
    std::filesystem::path path;
};

/// A checkpoint that verifies, and what was skipped to find it.
struct Found {
    std::int64_t step = 0;
    VerifiedFile file;
    std::vector<std::string> skipped; ///< newer ones that do not verify, each with the reason
    /// Used instead of the file, where ranks have its contents in memory; null: the file is read.
    std::shared_ptr<Reader const> held{};
};

/// The checkpoint's reader: the file is opened, unless its contents are held in memory.
///
/// Throws  as Reader
std::shared_ptr<Reader const> reader_of(Found const& found);

/// The checkpoints/ directory of a run.
class Store {
  public:
    /// `keep` (at least 1) is how many checkpoints `save` leaves. `still_ours` is called on rank 0
    /// before a file is renamed and before files are removed, and throws where the directory was
    /// taken over. `local` is a faster directory that all ranks see, written first; empty: none.
    /// Makes nothing yet.
    Store(std::filesystem::path directory, int keep, std::function<void()> still_ours = {},
          std::filesystem::path local = {});

    std::filesystem::path const& directory() const noexcept { return directory_; }

    /// DIRECTORY/step-00001200.h5
    std::filesystem::path path_for(std::int64_t step) const;

    /// All files that are named like finished checkpoints, the newest (highest step) first; none
    /// when there is no directory.
    std::vector<StoredCheckpoint> list() const;

    /// The newest checkpoint that verifies on all ranks and is of the step that its name says, here
    /// or in `local`; none when there is no checkpoint at all.
    ///
    /// Collective  over `comm`; the answer is the same on all ranks
    /// Throws      AgreedError 65 when there are checkpoints and none verifies
    [[nodiscard]] std::optional<Found> newest_good(comm::Communicator const& comm) const;

    /// Writes the checkpoint of a step. With `local`, it is written there; rank 0 then copies it
    /// here, and verifies the copy before renaming it. Then prunes: the `keep` newest and the one
    /// just written stay. Where the disk has no room for another one, the oldest are given up
    /// first, down to the newest that is intact.
    ///
    /// Units       seconds are wall time on this rank
    /// Collective  over `comm`; same step and attempt on all ranks
    /// Throws      AgreedError as `write`; all earlier checkpoints but those that it names as
    ///             given up are still there then
    Written save(comm::Communicator const& comm, Snapshot const& snapshot, std::int64_t step,
                 std::string const& attempt) const;

    /// Removes all but the `keep` newest checkpoints and the newest that verifies; returns what
    /// was removed. For one process.
    ///
    /// Throws  Error 64 when keep < 1; 65 when none verifies, and then nothing is removed
    std::vector<std::filesystem::path> prune(int keep) const;

    /// Whether the file is the checkpoint of that step here or in `local`.
    bool holds(std::filesystem::path const& file) const;

    /// Moves the checkpoints of steps after `step` to `folder` in their directory, here and in
    /// `local`: a resume from an earlier one does not continue from them. Returns how many. For one
    /// process.
    ///
    /// Throws  Error 73 or 74 when a file cannot be moved
    std::int64_t set_aside(std::int64_t step, std::string const& folder) const;

  private:
    /// Removes the oldest checkpoint, unless it is the newest that is intact, or unless a file of
    /// `bytes` would not fit even without all of them. Returns its path; empty: none.
    std::string give_up_oldest(std::uint64_t bytes) const;
    /// Collective  over `comm`, as `save`
    Written in_room(comm::Communicator const& comm,
                    std::function<Written(MakeRoom const&)> const& work) const;
    /// Collective  over `comm`, as `save`
    Written save_in_two_levels(comm::Communicator const& comm, Snapshot const& snapshot,
                               std::int64_t step, std::string const& attempt,
                               MakeRoom const& make_room) const;
    std::vector<StoredCheckpoint> files() const;
    std::vector<std::filesystem::path> remove_beyond(int keep, std::int64_t good_step) const;

    std::filesystem::path directory_;
    int keep_;
    std::function<void()> still_ours_;
    std::filesystem::path local_;
};

} // namespace lockstep::checkpoint
