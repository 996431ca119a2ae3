#include "checkpoint/writer.hpp"

#include "base/clock.hpp"
#include "base/file.hpp"
#include "base/hash.hpp"
#include "base/inject.hpp"
#include "base/partial_file.hpp"
#include "base/text.hpp"
#include "checkpoint/checksum_header.hpp"
#include "checkpoint/layout.hpp"
#include "checkpoint/record.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "h5/element_type.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <optional>
#include <thread>

#include "transfer.hpp"

namespace lockstep::checkpoint {

namespace {

constexpr std::uint64_t more_than_any_disk = std::uint64_t{1} << 62;

Error wrong_snapshot(std::string const& what, std::string const& why) {
    return {ExitCode::software, {what, why, "This is a bug; please report it"}};
}

/// Where ranges, given as first, count, first, count ..., leave off or overlap.
std::uint64_t tiled_up_to(std::vector<std::uint64_t> const& bounds) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
    for (std::size_t at = 0; at < bounds.size(); at += 2) {
        if (bounds[at + 1] > 0) {
            ranges.emplace_back(bounds[at], bounds[at + 1]);
        }
    }
    std::sort(ranges.begin(), ranges.end());
    std::uint64_t reached = 0;
    for (auto const& [first, count] : ranges) {
        if (first != reached) {
            break;
        }
        reached += count;
    }
    return reached;
}

/// One checkpoint on its way to the disk; each member is a phase that ends in a status reduction.
class Commit {
  public:
    Commit(comm::Communicator const& comm, Snapshot const& snapshot, std::filesystem::path path,
           std::filesystem::path partial)
        : comm_(comm), snapshot_(snapshot), path_(std::move(path)), partial_(std::move(partial)),
          disk_(inject_disk_fault(comm.rank(), step())) {}

    void check();
    void lay_out(MakeRoom const& make_room);
    bool write_parts();
    void read_back();
    void checksums();
    void rename(std::function<void()> const& still_ours);
    void spoil() const;

    std::uint64_t length() const { return length_; }
    std::int64_t step() const {
        auto const found = snapshot_.record.integers.find("step");
        return found == snapshot_.record.integers.end() ? -1 : found->second;
    }

  private:
    void check_own_parts() const;
    void check_tiling() const;
    void create_file(MakeRoom const& make_room);

    std::vector<Array> const& arrays() const { return snapshot_.arrays; }
    std::uint64_t count_of(std::size_t array, Part const& part) const {
        return part.bytes.size() / h5::size_of(arrays()[array].type);
    }

    comm::Communicator const& comm_;
    Snapshot const& snapshot_;
    std::filesystem::path path_;
    std::filesystem::path partial_;
    DiskFault disk_;
    std::vector<std::uint64_t> offsets_; ///< in the file, of each array
    std::uint64_t length_ = 0;           ///< of the file
    std::optional<File> file_;           ///< behind HDF5, from `read_back` on
    ChecksumHeader checksums_;
    std::vector<std::uint64_t> known_; ///< 1 for each block whose hash a rank knows
};

void Commit::check() {
    auto const own = hash64(layout_text(arrays(), snapshot_.views));
    auto roots = own;
    comm::broadcast(comm_, std::span(&roots, 1));
    comm::agree(comm_, "checking the snapshot", [&] {
        if (own != roots) {
            throw wrong_snapshot("arrays or views of the checkpoint differ between ranks",
                                 "all ranks must have the same ones");
        }
        check_own_parts();
    });
    check_tiling();
}

void Commit::check_own_parts() const {
    if (snapshot_.parts.size() != arrays().size()) {
        throw wrong_snapshot(concat("the checkpoint has ", arrays().size(), " arrays, but ",
                                    snapshot_.parts.size(), " lists of parts"),
                             "each array needs one list");
    }
    for (std::size_t i = 0; i < arrays().size(); ++i) {
        auto const& array = arrays()[i];
        for (auto const& part : snapshot_.parts[i]) {
            if (part.bytes.size() % h5::size_of(array.type) != 0 || part.first > array.elements ||
                count_of(i, part) > array.elements - part.first) {
                throw wrong_snapshot(concat("the part of ", array.name, " at element ", part.first,
                                            " with ", part.bytes.size(), " bytes"),
                                     concat("it does not fit the array, which has ", array.elements,
                                            " elements of ", h5::name_of(array.type)));
            }
        }
    }
    for (auto const& view : snapshot_.views) {
        auto const source = std::find_if(arrays().begin(), arrays().end(), [&](auto const& array) {
            return array.name == view.source;
        });
        auto const count = h5::elements(view.shape);
        if (source == arrays().end() || view.first > source->elements ||
            count > source->elements - view.first) {
            throw wrong_snapshot(concat("the view ", view.path, " of ", view.source),
                                 "that array does not exist, or ends before the view does");
        }
    }
}

/// Every element has to come from exactly one rank, or the file would keep old bytes of the disk.
void Commit::check_tiling() const {
    for (std::size_t i = 0; i < arrays().size(); ++i) {
        std::vector<std::uint64_t> own; // first, count
        for (auto const& part : snapshot_.parts[i]) {
            own.push_back(part.first);
            own.push_back(count_of(i, part));
        }
        auto const lengths = comm::all_gather(comm_, static_cast<std::int64_t>(own.size()));
        std::vector<std::int64_t> bounds(lengths.size() + 1, 0);
        std::partial_sum(lengths.begin(), lengths.end(), bounds.begin() + 1);
        std::vector<std::uint64_t> all(static_cast<std::size_t>(bounds.back()));
        std::copy(own.begin(), own.end(),
                  all.begin() + bounds[static_cast<std::size_t>(comm_.rank())]);
        comm::all_gather_slices(comm_, std::span(all), bounds);
        comm::agree(comm_, "checking the snapshot", [&] {
            if (auto const reached = tiled_up_to(all); reached != arrays()[i].elements) {
                throw wrong_snapshot(
                    concat("the parts of ", arrays()[i].name, " do not cover it exactly"),
                    concat("they have a gap or overlap at element ", reached, " of ",
                           arrays()[i].elements));
            }
        });
    }
}

void Commit::lay_out(MakeRoom const& make_room) {
    offsets_.resize(arrays().size() + 1);
    comm::agree(comm_, "laying out the checkpoint", [&] {
        if (comm_.is_root()) {
            create_file(make_room);
        }
    });
    offsets_.back() = length_;
    comm::broadcast(comm_, std::span(offsets_));
    length_ = offsets_.back();
}

/// Alone, since creating hundreds of datasets together costs seconds.
void Commit::create_file(MakeRoom const& make_room) {
    auto bytes = overhead_of(snapshot_.record, arrays().size() + snapshot_.views.size());
    for (auto const& array : arrays()) {
        bytes += array.elements * h5::size_of(array.type);
    }
    try_space(partial_, disk_ == DiskFault::full ? more_than_any_disk : bytes, make_room);

    auto file = h5::File::create(partial_, {.user_block = checksum_header_bytes});
    for (auto const& array : arrays()) {
        file.create_dataset(array.name, array.type, {array.elements});
    }
    for (auto const& view : snapshot_.views) {
        file.create_view(view, *file.info(view.source).type);
    }
    write_record(file, snapshot_.record, checkpoint_format);
    file.write_text(layout_path, layout_text(arrays(), snapshot_.views));
    for (std::size_t i = 0; i < arrays().size(); ++i) {
        offsets_[i] = file.info(arrays()[i].name).offset.value_or(0); // none has an empty array
    }
    file.close();

    auto const raw = File::open_write(partial_);
    length_ = raw.size();
    // Within the collective write a full disk could not be survived.
    raw.claim_space(length_);
}

bool Commit::write_parts() {
    if (disk_ == DiskFault::slow) {
        std::this_thread::sleep_for(std::chrono::seconds(1));
    }
    comm::agree(comm_, "opening the checkpoint file that rank 0 created", [&] {
        if (auto const found = File::open_write(partial_).size(); found != length_) {
            throw Error(ExitCode::io,
                        {concat("cannot write ", partial_.string()),
                         concat("rank 0 created this file with ", length_,
                                " bytes, but on this host the file has ", found),
                         "Put the run's directory on a file system that all hosts share"});
        }
    });
    FilePlaces const places{partial_, offsets_};
    switch (choose_transport(comm_, partial_.parent_path())) {
    case Transport::gather:
        write_by_gather(comm_, comm_, snapshot_, places);
        return true;
    case Transport::hosts:
        write_by_gather(comm_, comm_.split_by_host(), snapshot_, places);
        return true;
    case Transport::collective:
        break;
    }
    return write_collectively(comm_, snapshot_, places);
}

void Commit::read_back() {
    comm::agree(comm_, "reading the checkpoint back", [&] {
        file_.emplace(File::open_write(partial_));
        checksums_ = ChecksumHeader::for_length(length_);
        known_.assign(checksums_.hashes.size(), 0);
        for (std::size_t i = 0; i < arrays().size(); ++i) {
            for (auto const& part : snapshot_.parts[i]) {
                auto const offset = offsets_[i] + part.first * h5::size_of(arrays()[i].type);
                auto const same =
                    checkpoint::read_back(*file_, offset, part.bytes, checksums_, known_);
                if (same != part.bytes.size()) {
                    throw Error(ExitCode::io,
                                {concat("byte ", offset + same, " of ", partial_.string(), " (",
                                        arrays()[i].name, ") is wrong"),
                                 "the data read back is not what was written",
                                 "Check the disk for faults (dmesg). If the disk has none, set "
                                 "LOCKSTEP_CHECKPOINT_WRITER=gather"});
                }
            }
        }
    });
}

/// The blocks of no single rank hold HDF5's own bytes, or the edge of a part: they are few.
void Commit::checksums() {
    comm::all_reduce(comm_, std::span(known_), comm::Reduce::sum);
    comm::agree(comm_, "hashing the checkpoint", [&] {
        std::uint64_t left = 0;
        for (std::uint64_t block = 0; block < known_.size(); ++block) {
            if (known_[block] == 0 && left++ % static_cast<std::uint64_t>(comm_.size()) ==
                                          static_cast<std::uint64_t>(comm_.rank())) {
                checksums_.hashes[block] = hash_of_block(*file_, checksums_, block);
            }
        }
    });
    // Each is zero on all ranks but one.
    comm::all_reduce(comm_, std::span(checksums_.hashes), comm::Reduce::sum);
    comm::agree(comm_, "writing the checksums of the checkpoint", [&] {
        if (comm_.is_root()) {
            if (auto const found = file_->size(); found != length_) {
                throw Error(ExitCode::io,
                            {concat("cannot write ", partial_.string()),
                             concat("the file was created with ", length_,
                                    " bytes, but after writing has ", found),
                             "Make sure that no other program changes this file. If the error "
                             "comes back, set LOCKSTEP_CHECKPOINT_WRITER=gather"});
            }
            file_->write_at(0, checksums_.encoded());
        }
        file_->sync();
    });
}

/// From here on the checkpoint is there.
void Commit::rename(std::function<void()> const& still_ours) {
    comm::agree(comm_, "renaming the checkpoint", [&] {
        if (comm_.is_root()) {
            if (still_ours) {
                still_ours();
            }
            rename_durably(partial_, path_);
        }
    });
}

/// As a disk does that says too early that bytes are safe, or loses some of them later.
void Commit::spoil() const {
    if (disk_ == DiskFault::torn) {
        std::filesystem::resize_file(path_, length_ / 2);
    } else if (disk_ == DiskFault::corrupt) {
        std::array<std::byte, 1> byte{};
        auto const file = File::open_write(path_);
        file.read_at(length_ / 2, byte);
        byte[0] ^= std::byte{1};
        file.write_at(length_ / 2, byte);
    }
}

} // namespace

std::filesystem::path partial_path(std::filesystem::path const& path, std::string const& attempt) {
    return lockstep::partial_path(path, attempt);
}

Written write(comm::Communicator const& comm, Snapshot const& snapshot,
              std::filesystem::path const& path, std::string const& attempt,
              std::function<void()> const& still_ours, MakeRoom const& make_room) {
    Stopwatch const watch;
    auto const name = partial_path(path, attempt);
    std::optional<PartialFile> partial;
    if (comm.is_root()) {
        partial.emplace(name);
    }
    Commit commit(comm, snapshot, path, name);
    auto const reach = [&](char const* phase) {
        inject_fault_in(comm.rank(), phase, commit.step(), Names::whole);
    };
    reach("check");
    commit.check();
    reach("layout");
    commit.lay_out(make_room);
    reach("write");
    bool const collective = commit.write_parts();
    reach("read-back");
    commit.read_back();
    reach("checksums");
    commit.checksums();
    reach("rename");
    commit.rename(still_ours);
    commit.spoil();
    reach("prune");
    return {path, commit.length(), watch.seconds(), collective, {}};
}

} // namespace lockstep::checkpoint
