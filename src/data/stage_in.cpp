#include "data/stage_in.hpp"

#include "base/file.hpp"
#include "base/hash.hpp"
#include "base/notice.hpp"
#include "base/own_file.hpp"
#include "base/partial_file.hpp"
#include "base/secret_file.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <list>
#include <unistd.h>
#include <vector>

namespace lockstep::data {

namespace {

constexpr std::uint64_t bytes_at_once = std::uint64_t{16} << 20; ///< that a rank copies at once
constexpr std::uint64_t block_bytes = std::uint64_t{1} << 20;    ///< that are compared at once
constexpr std::uint64_t max_blocks = 64;                         ///< of a file that are compared

struct Copy {
    std::filesystem::path from;
    std::filesystem::path to;
    std::filesystem::path partial; ///< its name until it is whole
    std::uint64_t bytes = 0;
    std::filesystem::file_time_type changed;
};

Copy copy_of(std::filesystem::path const& from, std::filesystem::path const& directory,
             std::string const& attempt) {
    static_cast<void>(File::open_read(from)); // says what keeps it from being read
    Copy copy{.from = from,
              .to = {},
              .partial = {},
              .bytes = std::filesystem::file_size(from),
              .changed = std::filesystem::last_write_time(from)};
    auto const identity = concat(std::filesystem::absolute(from).string(), " ", copy.bytes, " ",
                                 copy.changed.time_since_epoch().count(), " ", ::geteuid());
    copy.to = directory / concat(hex(hash64(identity)), "-", from.filename().string());
    copy.partial = partial_path(copy.to, attempt);
    return copy;
}

/// Whether a file has the source's bytes, as far as some blocks show.
bool is_alike(Copy const& copy) {
    auto const source = File::open_read(copy.from);
    auto const target = File::open_read(copy.to);
    auto const blocks = (copy.bytes + block_bytes - 1) / block_bytes;
    auto const looks = std::min(blocks, max_blocks);
    std::vector<std::byte> one;
    std::vector<std::byte> other;
    for (std::uint64_t look = 0; look < looks; ++look) {
        auto const block =
            looks == 1 ? 0 : look * (blocks - 1) / (looks - 1); // first and last, too
        auto const at = block * block_bytes;
        one.resize(std::min(block_bytes, copy.bytes - at));
        other.resize(one.size());
        source.read_at(at, one);
        target.read_at(at, other);
        if (one != other) {
            return false;
        }
    }
    return true;
}

/// Whether others may read the one, but not the other.
bool is_wider(std::filesystem::path const& file, std::filesystem::path const& than) {
    using std::filesystem::perms;
    constexpr auto reads = perms::group_read | perms::others_read;
    std::error_code absent;
    auto const more = std::filesystem::status(file, absent).permissions() &
                      ~std::filesystem::status(than).permissions();
    return !absent && (more & reads) != perms::none;
}

/// Why what has the copy's name is not that copy; empty: it is, or there is nothing.
std::string misfit(Copy const& copy) {
    std::error_code absent;
    auto why = distrust(copy.to);
    if (why.empty() && std::filesystem::file_size(copy.to, absent) != copy.bytes && !absent) {
        why = "its size is not that of the file";
    }
    if (why.empty() && !absent && is_wider(copy.to, copy.from)) {
        why = "users may read it who may not read the file"; // an earlier version has made it
    }
    if (why.empty() && !absent && !is_alike(copy)) {
        why = "its bytes are not those of the file";
    }
    return why;
}

/// A new directory tells only those of private files who may read them.
void make_place(std::filesystem::path const& directory, std::vector<Copy> const& copies) {
    using std::filesystem::perms;
    bool const is_new = !std::filesystem::exists(directory);
    make_directories(directory);
    bool const all_public = std::ranges::all_of(copies, [](Copy const& copy) {
        auto const mode = std::filesystem::status(copy.from).permissions();
        return (mode & perms::others_read) != perms::none;
    });
    if (is_new && !all_public) {
        std::filesystem::permissions(directory, perms::owner_all);
    }
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

void give_names(std::vector<Copy> const& copies, std::list<PartialFile>& partials) {
    auto partial = partials.begin(); // of each copy
    for (auto const& copy : copies) {
        if (std::filesystem::last_write_time(copy.from) != copy.changed ||
            std::filesystem::file_size(copy.from) != copy.bytes) {
            throw Error(ExitCode::data,
                        {copy.from.string(), "this file was changed while it was copied",
                         "Start again, and do not change data while a run uses it"});
        }
        File::open_write(copy.partial).sync();
        (partial++)->rename(copy.to);
    }
}

} // namespace

std::vector<std::filesystem::path> stage_in(std::vector<std::filesystem::path> const& files,
                                            std::filesystem::path const& directory,
                                            comm::Communicator const& host) {
    auto attempt = new_token();
    comm::broadcast_text(host, attempt);
    std::vector<std::filesystem::path> staged;
    std::vector<Copy> copies;
    std::vector<std::int64_t> is_missing;
    comm::agree(host, "looking for data to copy", [&] {
        for (auto const& path : files) {
            copies.push_back(copy_of(path, directory, attempt));
            staged.push_back(copies.back().to);
        }
        is_missing.assign(copies.size(), 0);
        for (std::size_t i = 0; host.is_root() && i < copies.size(); ++i) {
            auto const& copy = copies[i];
            auto const same = [&](Copy const& other) { return other.to == copy.to; };
            if (std::ranges::any_of(std::span(copies).first(i), same)) {
                continue;
            }
            auto const why = misfit(copy);
            if (!why.empty()) {
                notice(concat("warning: the copy ", copy.to.string(), " of ", copy.from.string(),
                              " was made again: ", why));
            }
            std::error_code none;
            is_missing[i] = !why.empty() || !std::filesystem::exists(copy.to, none) ? 1 : 0;
        }
    });
    comm::broadcast(host, std::span(is_missing)); // others may see the directory a little later
    std::vector<Copy> missing;
    for (std::size_t i = 0; i < copies.size(); ++i) {
        if (is_missing[i] != 0) {
            missing.push_back(copies[i]);
        }
    }
    std::list<PartialFile> partials; // of the missing ones, on the host's root
    comm::agree(host, "claiming room for data", [&] {
        if (host.is_root()) {
            make_place(directory, copies);
            for (auto const& copy : missing) { // its name is of this user's copy alone
                make_secret_file(partials.emplace_back(copy.partial).path());
                File::open_write(copy.partial).claim_space(copy.bytes);
            }
        }
    });
    comm::agree(host, "copying data", [&] { copy_own_parts(missing, host); });
    comm::agree(host, "naming copies of data", [&] {
        if (host.is_root()) {
            give_names(missing, partials);
        }
    });
    return staged;
}

} // namespace lockstep::data
