#include "checkpoint/space.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <cerrno>

namespace lockstep::checkpoint {

namespace {

void try_once(std::filesystem::path const& path, std::uint64_t bytes) {
    auto const file = File::create_new(path);
    // Asked first, so as not to fill the disk for others in order to learn that it is too small.
    if (auto const free = free_space(path.parent_path()); free < bytes) {
        throw Error(ExitCode::io, {concat("no room for ", path.string()),
                                   concat("it needs ", bytes_text(bytes), ", but only ",
                                          bytes_text(free), " are free"),
                                   "Remove files, or use another disk (for a run: run.directory)"});
    }
    file.claim_space(bytes); // quotas and limits are told by trying only
}

/// Whether fewer files could help: a limit on one file's size, or a broken disk, would stay.
bool is_short_of_room(Error const& failure, std::filesystem::path const& path,
                      std::uint64_t bytes) {
    auto const& why = failure.text().why;
    return failure.code() == ExitCode::io &&
           (why == system_text(ENOSPC) || why == system_text(EDQUOT) ||
            free_space(path.parent_path()) < bytes);
}

} // namespace

void try_space(std::filesystem::path const& path, std::uint64_t bytes, MakeRoom const& make_room) {
    for (;;) {
        try {
            return try_once(path, bytes);
        } catch (Error const& failure) {
            if (!make_room || !is_short_of_room(failure, path, bytes) || !make_room(bytes)) {
                throw;
            }
        }
    }
}

std::uint64_t overhead_of(Record const& record, std::size_t datasets) {
    constexpr std::uint64_t fixed = std::uint64_t{64} << 10;
    constexpr std::uint64_t of_dataset = 8192; // two pages: its gap, its header
    constexpr std::uint64_t of_value = 256;
    auto bytes = fixed + datasets * of_dataset + record.history.size() + record.deck.size() +
                 (record.integers.size() + record.reals.size()) * of_value;
    for (auto const& [name, note] : record.notes) {
        bytes += name.size() + 2 * note.size() + of_value; // in JSON, quotes have a mark
    }
    return bytes;
}

} // namespace lockstep::checkpoint
