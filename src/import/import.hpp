#pragma once

#include "import/source.hpp"
#include "lockstep/comm/communicator.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "split.hpp"

namespace lockstep::import {

/// Called with the progress of an import: what is being done, items done, and items in all.
using ImportProgress = std::function<void(std::string const&, std::int64_t done, std::int64_t all)>;

struct ImportOptions {
    std::filesystem::path out{}; ///< a file; a directory where there are several sets
    SplitOptions split{};
    std::int64_t shard_samples = 0;       ///< most samples of a file; 0: any number
    bool skip_bad = false;                ///< skip items that cannot be read, and list them
    bool overwrite = false;               ///< replace the data set files that are there
    bool without_sources = false;         ///< do not store what each sample was made from
    int deflate = 0;                      ///< 1 to 9: chunked and compressed; 0: contiguous
    std::string doing = "importing data"; ///< in the error of an item
    /// Called on each rank before a part. If it throws on one rank, the import ends on all; it can
    /// be continued later.
    std::function<void()> before_part{};
};

struct ImportedFile {
    std::filesystem::path path{};
    std::int64_t samples = 0;
    std::uint64_t bytes = 0;
};

/// The result for a set: how many samples, groups and members of each class.
struct ImportedSet {
    std::string name{}; ///< empty where there is one set without a name
    std::int64_t items = 0;
    std::int64_t samples = 0;
    std::int64_t groups = 0; ///< 0: not split by group
    std::vector<std::int64_t> class_counts{};
};

struct ImportReport {
    std::vector<ImportedFile> files{};
    std::vector<ImportedSet> sets{};
    std::vector<std::string> skipped{}; ///< one message for each bad item
    std::vector<std::string> notes{};   ///< what was merged or left out, and of how many items
    std::int64_t parts_kept = 0;        ///< parts of an interrupted import that were not done again
};

/// Imports all samples of a source. Items are decoded in parts by all ranks, each part a file with
/// a checksum in OUT.importing, where an interrupted import of the same source continues; then the
/// parts are joined to data set files, which appear under their names when they are durable. The
/// files' bytes do not depend on the number of ranks.
///
/// Collective  over `comm`; the same source and options on all ranks
/// Throws      AgreedError: 66 for a missing source, 65 for a damaged one, 73 or 74 when OUT cannot
///             be written, 64 for options that do not fit
ImportReport import_set(comm::Communicator const& comm, ImportSource const& source,
                        ImportOptions const& options, ImportProgress const& progress);

} // namespace lockstep::import
