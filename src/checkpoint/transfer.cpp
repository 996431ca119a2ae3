#include "transfer.hpp"

#include "base/descriptor.hpp"
#include "base/environment.hpp"
#include "base/file.hpp"
#include "base/hash.hpp"
#include "base/process_calls.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/messages.hpp"
#include "comm/phase.hpp"
#include "comm/wait_scope.hpp"
#include "h5/element_type.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <functional>
#include <optional>
#include <sys/statfs.h>
#include <unistd.h>

namespace lockstep::checkpoint {

namespace {

constexpr std::size_t chunk_bytes = std::size_t{16} << 20;

bool is_nfs(std::filesystem::path const& directory) {
    constexpr long magic = 0x6969;
    struct statfs info {};
    return ::statfs(directory.c_str(), &info) == 0 && info.f_type == magic;
}

Transport wanted(std::filesystem::path const& directory) {
    auto const text = environment_text("LOCKSTEP_CHECKPOINT_WRITER");
    if (text.empty() && is_nfs(directory)) {
        return Transport::gather;
    }
    if (text.empty()) { // in a process that is not ours a refused write would leave ranks in HDF5
        return process_calls() != nullptr ? Transport::collective : Transport::hosts;
    }
    for (auto const& [name, transport] :
         {std::pair("collective", Transport::collective), std::pair("gather", Transport::gather),
          std::pair("hosts", Transport::hosts)}) {
        if (text == name) {
            return transport;
        }
    }
    throw Error(ExitCode::usage, {concat("LOCKSTEP_CHECKPOINT_WRITER = ", text),
                                  "expected collective, gather or hosts",
                                  "Correct this variable, or unset the variable"});
}

/// A part of the file that a rank has.
struct Extent {
    std::uint64_t offset = 0;
    std::span<std::byte const> bytes;
};

std::vector<Extent> extents_of(Snapshot const& snapshot,
                               std::vector<std::uint64_t> const& offsets) {
    std::vector<Extent> extents;
    for (std::size_t i = 0; i < snapshot.parts.size(); ++i) {
        auto const element = h5::size_of(snapshot.arrays[i].type);
        for (auto const& part : snapshot.parts[i]) {
            if (!part.bytes.empty()) {
                extents.push_back({offsets[i] + part.first * element, part.bytes});
            }
        }
    }
    return extents;
}

/// The disk begins at once, while the next array is copied and this one is read back. Advice:
/// where it cannot be followed, the sync at the end does all of it.
void start_writing(std::filesystem::path const& path, std::uint64_t offset, Array const& array,
                   std::vector<Part> const& parts) {
    Descriptor const file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    for (auto const& part : parts) {
        auto const first = offset + part.first * h5::size_of(array.type);
        ::sync_file_range(file.get(), static_cast<off64_t>(first),
                          static_cast<off64_t>(part.bytes.size()), SYNC_FILE_RANGE_WRITE);
    }
}

void send_extents(comm::Communicator const& comm, std::vector<Extent> const& extents) {
    std::uint64_t const count = extents.size();
    comm::send(comm, std::as_bytes(std::span(&count, 1)), 0);
    for (auto const& extent : extents) {
        std::array<std::uint64_t, 2> const place{extent.offset, extent.bytes.size()};
        comm::send(comm, std::as_bytes(std::span(place)), 0);
        for (std::size_t at = 0; at < extent.bytes.size(); at += chunk_bytes) {
            comm::send(
                comm, extent.bytes.subspan(at, std::min(chunk_bytes, extent.bytes.size() - at)), 0);
        }
    }
}

/// Takes a rank's extents to the end even where the disk fails: the rank would wait for ever.
void receive_extents(comm::Communicator const& comm, std::optional<File> const& file, int from,
                     std::vector<std::byte>& chunk, std::optional<Error>& failure) {
    std::uint64_t count = 0;
    comm::receive(comm, std::as_writable_bytes(std::span(&count, 1)), from);
    for (; count > 0; --count) {
        std::array<std::uint64_t, 2> place{};
        comm::receive(comm, std::as_writable_bytes(std::span(place)), from);
        auto [offset, left] = place;
        while (left > 0) {
            auto const part = std::span(chunk).first(std::min<std::size_t>(left, chunk.size()));
            comm::receive(comm, part, from);
            if (!failure) {
                failure = comm::failure_of([&, at = offset] { file->write_at(at, part); });
            }
            offset += part.size();
            left -= part.size();
        }
    }
}

} // namespace

Transport choose_transport(comm::Communicator const& comm, std::filesystem::path const& directory) {
    int choice = 0;
    comm::agree(comm, "choosing how to write the checkpoint", [&] {
        if (comm.is_root()) {
            choice = static_cast<int>(wanted(directory));
        }
    });
    comm::broadcast(comm, std::span(&choice, 1));
    return static_cast<Transport>(choice);
}

bool write_collectively(comm::Communicator const& comm, Snapshot const& snapshot,
                        FilePlaces const& places) {
    std::vector<std::uint64_t> calls;
    for (auto const& parts : snapshot.parts) {
        calls.push_back(0);
        for (auto const& part : parts) {
            calls.back() += h5::File::calls_for(part.bytes.size());
        }
    }
    comm::all_reduce(comm, std::span(calls), comm::Reduce::maximum);

    auto const hosts = comm::all_gather(comm, static_cast<std::int64_t>(hash64(comm::host_name())));
    bool const one_host =
        std::all_of(hosts.begin(), hosts.end(), [&](auto each) { return each == hosts.front(); });
    // In HDF5's collective calls a rank waits for the others, or for its disk: it is not to blame
    // for a host that is cut off meanwhile.
    std::optional<h5::File> file;
    comm::agree(comm, "opening the checkpoint", [&] {
        comm::WaitScope const wait(comm, comm::Wait::file);
        file.emplace(h5::File::open_parallel(places.path, comm));
    });
    comm::agree(comm, "finding the checkpoint's arrays", [&] {
        comm::WaitScope const wait(comm, comm::Wait::file);
        for (auto const& array : snapshot.arrays) {
            file->keep_open(array.name);
        }
    });
    bool collective = true;
    comm::agree(comm, "writing the checkpoint", [&] {
        comm::WaitScope const wait(comm, comm::Wait::file);
        std::optional<Error> failure;
        auto const go_on_after = [&](std::function<void()> const& work) { // as the others do
            auto const failed = comm::failure_of(work);
            failure = failure ? failure : failed;
        };
        for (std::size_t i = 0; i < snapshot.arrays.size(); ++i) {
            auto const& array = snapshot.arrays[i];
            go_on_after([&] {
                auto const transfer =
                    file->write_parts(array.name, array.type, snapshot.parts[i], calls[i]);
                collective = collective && transfer.collective;
            });
            start_writing(places.path, places.offsets[i], array, snapshot.parts[i]);
        }
        if (!one_host) {
            // Others may see what is written only after a sync, which closing is not.
            go_on_after([&] { file->flush(); });
        }
        if (failure) {
            throw Error(*failure);
        }
    });
    comm::agree(comm, "closing the checkpoint", [&] {
        comm::WaitScope const wait(comm, comm::Wait::file);
        file->close();
    });
    return comm::all_ranks(comm, collective);
}

void write_by_gather(comm::Communicator const& comm, comm::Communicator const& group,
                     Snapshot const& snapshot, FilePlaces const& places) {
    auto const own = extents_of(snapshot, places.offsets);
    comm::agree(comm, "writing the checkpoint", [&] {
        if (!group.is_root()) {
            send_extents(group, own);
            return;
        }
        std::optional<File> file;
        std::optional<Error> failure = comm::failure_of([&] {
            file.emplace(File::open_write(places.path));
            for (auto const& extent : own) {
                file->write_at(extent.offset, extent.bytes);
            }
        });
        std::vector<std::byte> chunk(chunk_bytes);
        for (int rank = 1; rank < group.size(); ++rank) {
            receive_extents(group, file, rank, chunk, failure);
        }
        if (failure) {
            throw Error(*failure);
        }
        file->sync();
    });
}

} // namespace lockstep::checkpoint
