#include "data/stage_in.hpp"

#include "base/file.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <unistd.h>
#include <vector>

namespace lockstep::data {

namespace {

constexpr std::uint64_t bytes_at_once = std::uint64_t{16} << 20; ///< that a rank copies at once

struct Copy {
    std::filesystem::path from;
    std::filesystem::path to;
    std::filesystem::path partial; ///< its name until it is whole
    std::uint64_t bytes = 0;
    std::filesystem::file_time_type changed;
};

Copy copy_of(std::filesystem::path const& from, std::filesystem::path const& directory,
             std::int64_t attempt) {
    if (!std::filesystem::exists(from)) {
        throw Error(ExitCode::no_input, {concat("cannot open ", from.string()), "no such file",
                                         "Check the path, or make the file first"});
    }
    Copy copy{.from = from,
              .to = {},
              .partial = {},
              .bytes = std::filesystem::file_size(from),
              .changed = std::filesystem::last_write_time(from)};
    auto const identity = concat(std::filesystem::absolute(from).string(), " ", copy.bytes, " ",
                                 copy.changed.time_since_epoch().count());
    copy.to = directory / concat(hex(hash64(identity)), "-", from.filename().string());
    copy.partial = concat(copy.to.string(), ".partial-", attempt);
    return copy;
}

void copy_part(Copy const& copy, std::uint64_t at) {
    auto const source = File::open_read(copy.from);
    auto const target = File::open_write(copy.partial);
    std::vector<std::byte> bytes(std::min(bytes_at_once, copy.bytes - at));
    source.read_at(at, bytes);
    auto const hash = hash64(bytes);
    target.write_at(at, bytes);
    target.read_at(at, bytes);
    if (hash64(bytes) != hash) {
        throw Error(ExitCode::data, {concat(copy.partial.string(), " at byte ", at),
                                     "the data read back from this copy is not what was written",
                                     "Check the disk of the copy for faults (dmesg), or name a "
                                     "directory on another disk in data.cache"});
    }
}

void copy_own_parts(std::vector<Copy> const& copies, comm::Communicator const& host) {
    int turn = 0;
    for (auto const& copy : copies) {
        for (std::uint64_t at = 0; at < copy.bytes; at += bytes_at_once) {
            if (turn++ % host.size() == host.rank()) {
                copy_part(copy, at);
            }
        }
    }
}

void give_names(std::vector<Copy> const& copies) {
    for (auto const& copy : copies) {
        if (std::filesystem::last_write_time(copy.from) != copy.changed ||
            std::filesystem::file_size(copy.from) != copy.bytes) {
            throw Error(ExitCode::data,
                        {copy.from.string(), "this file was changed while it was copied",
                         "Start again, and do not change data while a run uses it"});
        }
        File::open_write(copy.partial).sync();
        rename_durably(copy.partial, copy.to);
    }
}

void remove_partials(std::vector<Copy> const& copies) {
    for (auto const& copy : copies) {
        std::error_code ignored; // the failure that brought us here is the one to tell
        std::filesystem::remove(copy.partial, ignored);
    }
}

} // namespace

std::vector<std::filesystem::path> stage_in(std::vector<std::filesystem::path> const& files,
                                            std::filesystem::path const& directory,
                                            comm::Communicator const& host) {
    std::int64_t attempt = ::getpid();
    comm::broadcast(host, std::span(&attempt, 1));
    std::vector<std::filesystem::path> staged;
    std::vector<Copy> missing;
    comm::agree(host, "looking for data to copy", [&] {
        for (auto const& path : files) {
            auto const copy = copy_of(path, directory, attempt);
            staged.push_back(copy.to);
            std::error_code absent;
            bool const is_new = std::ranges::none_of(
                missing, [&](Copy const& other) { return other.to == copy.to; });
            if (is_new && (std::filesystem::file_size(copy.to, absent) != copy.bytes || absent)) {
                missing.push_back(copy);
            }
        }
    });
    try {
        comm::agree(host, "claiming room for data", [&] {
            if (host.is_root()) {
                make_directories(directory);
                for (auto const& copy : missing) {
                    File::create_new(copy.partial).claim_space(copy.bytes);
                }
            }
        });
        comm::agree(host, "copying data", [&] { copy_own_parts(missing, host); });
        comm::agree(host, "naming copies of data", [&] {
            if (host.is_root()) {
                give_names(missing);
            }
        });
    } catch (...) {
        if (host.is_root()) {
            remove_partials(missing);
        }
        throw;
    }
    return staged;
}

} // namespace lockstep::data
