#include "base/hash.hpp"
#include "base/packing.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/gather_shared.hpp"
#include "comm/hosts.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <array>
#include <sys/stat.h>

#include "dataset_parts.hpp"

namespace lockstep::data {

namespace {

constexpr char const* phase = "opening the data and the model";

/// The files that rank 0 finds.
std::vector<std::filesystem::path> files_of_root(DatasetOptions const& options,
                                                 comm::Communicator const& world) {
    std::string packed;
    comm::agree(world, phase, [&] {
        if (world.is_root()) {
            Packer packer;
            for (auto const& path : named_files(options)) {
                packer.put(std::string_view(path.native()));
            }
            packed.assign(reinterpret_cast<char const*>(packer.bytes().data()),
                          packer.bytes().size());
        }
    });
    comm::broadcast_text(world, packed);
    std::vector<std::filesystem::path> paths;
    for (Unpacker unpacker(std::as_bytes(std::span(packed))); !unpacker.at_end();) {
        paths.emplace_back(unpacker.get_text());
    }
    return paths;
}

/// The hash of some files as this host sees them: on a file system that hosts share, equal on all.
std::uint64_t view_of(std::vector<std::filesystem::path> const& paths) {
    constexpr std::size_t max = 16;
    Hasher hasher;
    auto const looks = std::min(max, paths.size());
    for (std::size_t i = 0; i < looks; ++i) {
        struct stat status {};
        std::array<std::int64_t, 4> seen{};
        if (::stat(paths[paths.size() * i / looks].c_str(), &status) == 0) {
            seen = {static_cast<std::int64_t>(status.st_ino), status.st_size, status.st_mtim.tv_sec,
                    status.st_mtim.tv_nsec};
        }
        hasher.add(std::as_bytes(std::span(seen)));
    }
    return hasher.digest();
}

/// The ranks whose hosts see the same files as this one's, this host's among them.
comm::Communicator who_see_the_same(std::vector<std::filesystem::path> const& paths,
                                    comm::Communicator const& world) {
    auto const host = world.split_by_host();
    std::uint64_t view = host.is_root() ? view_of(paths) : 0;
    comm::broadcast(host, std::span(&view, 1));
    auto const views = comm::all_gather(world, view);
    return world.split(static_cast<int>(std::ranges::find(views, view) - views.begin()));
}

} // namespace

Dataset Dataset::open_together(DatasetOptions const& options, comm::Communicator const& world) {
    auto const paths = files_of_root(options, world);
    auto const group = who_see_the_same(paths, world);
    auto const rank = static_cast<std::size_t>(group.rank());
    auto const ranks = static_cast<std::size_t>(group.size());
    Packer packer;
    std::optional<Dataset> own;
    comm::agree(world, phase, [&] {
        own.emplace(Dataset(options, OfNoFile{}));
        own->parts_->source.room_for_small /= ranks;
        own->open_file(paths.front(), group.is_root() ? Look::all : Look::form);
        for (auto file = std::max<std::size_t>(paths.size() * rank / ranks, 1);
             file < paths.size() * (rank + 1) / ranks; ++file) {
            own->open_file(paths[file], Look::all);
        }
        own->pack(group.is_root() ? 0 : 1, packer);
    });
    auto whole = own->of_no_file();
    own.reset();
    auto const packed = comm::gather_shared(group, packer.bytes());
    whole.parts_->packed = packed.memory;
    auto const hosts = comm::hosts_from(comm::leaders(group, group.split_by_host()));
    whole.parts_->viewers = {hosts.host(group.rank()), hosts.count()};
    std::uint64_t of_root = 0;
    comm::agree(world, phase, [&] {
        for (auto const slice : packed.of_rank) {
            Unpacker unpacker(slice);
            whole.add(unpacker);
        }
        whole.complete();
        of_root = whole.fingerprint_;
    });
    comm::broadcast(world, std::span(&of_root, 1));
    comm::agree(world, phase, [&] {
        if (whole.fingerprint_ != of_root) {
            throw Error(ExitCode::data,
                        {paths.front().string(),
                         "this host's files do not hold the same data as those of rank 0's host",
                         "Copy the same files to all hosts, or name files that all hosts share"});
        }
    });
    return whole;
}

/// The same data set before its files.
Dataset Dataset::of_no_file() const {
    Dataset set;
    set.parts_ = std::make_shared<Parts>();
    for (auto const& field : parts_->inputs) {
        set.parts_->inputs.push_back(field.without_files());
    }
    for (auto const& field : parts_->targets) {
        set.parts_->targets.push_back(field.without_files());
    }
    set.parts_->source.sample_per_file = parts_->source.sample_per_file;
    set.parts_->weights = parts_->weights;
    set.parts_->mask = parts_->mask;
    set.parts_->labels = parts_->labels;
    set.parts_->leaves_mask = parts_->leaves_mask;
    set.weights_ = weights_ ? std::make_shared<std::vector<double>>() : nullptr;
    set.facts_ = facts_;
    set.names_ = facts_.classes;
    return set;
}

/// Packs what was found in the files from `first` on.
void Dataset::pack(std::size_t first, Packer& packer) const {
    auto const& source = parts_->source;
    packer.put(source.named.size() - first);
    for (auto file = first; file < source.named.size(); ++file) {
        source.files.stamp(source.named[file]).pack(packer);
        packer.put(source.end_of_file(file) - source.first_of_file[file]);
        packer.put(parts_->digests[file - first]);
        for (auto const* const fields : {&parts_->inputs, &parts_->targets}) {
            for (auto const& field : *fields) {
                field.pack(file, first, source, packer);
            }
        }
    }
    packer.put(has_numbers_);
    packer.put_all(std::span(counts_));
    packer.put_all(weights_ ? std::span(std::as_const(*weights_)) : std::span<double const>());
}

/// Takes the files in that a rank has packed.
void Dataset::add(Unpacker& packed) {
    auto& source = parts_->source;
    for (auto files = packed.get<std::size_t>(); files > 0; --files) {
        source.named.push_back(source.files.add(FilePool::Stamp::unpacked(packed)));
        source.first_of_file.push_back(source.samples);
        source.samples += packed.get<std::int64_t>();
        parts_->digests.push_back(packed.get<std::uint64_t>());
        for (auto* const fields : {&parts_->inputs, &parts_->targets}) {
            for (auto& field : *fields) {
                field.add(packed, source);
            }
        }
    }
    has_numbers_ = packed.get<bool>() || has_numbers_;
    auto const counts = packed.get_all<std::int64_t>();
    counts_.resize(std::max(counts_.size(), counts.size()), 0);
    for (std::size_t label = 0; label < counts.size(); ++label) {
        counts_[label] += counts[label];
    }
    auto const weights = packed.get_all<double>();
    if (weights_) {
        weights_->insert(weights_->end(), weights.begin(), weights.end());
    }
}

} // namespace lockstep::data
