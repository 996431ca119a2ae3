#pragma once

#include "comm/shared_block.hpp"
#include "lockstep/data/dataset.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "field.hpp"
#include "source.hpp"

namespace lockstep::data {

/// What was opened; readers on several threads change only the contents of its caches.
struct Dataset::Parts {
    Source source;
    std::vector<Field> inputs;
    std::vector<Field> targets;
    std::optional<comm::SharedBlock> memory; ///< of what is kept there
    bool on_disk = false;                    ///< the files are read from copies
    std::string weights;                     ///< name of their dataset
    Labels labels = Labels::guessed;
    bool channels_last = false;                      ///< as the options have it
    std::string mask;                                ///< name of its dataset; or empty
    bool leaves_mask = false;                        ///< the first file's is not used
    std::vector<std::uint64_t> digests;              ///< of what is known of each file
    std::shared_ptr<comm::SharedBlock const> packed; ///< by all ranks; columns refer to it
    Viewers viewers;
};

/// The files that the options name, one at least.
///
/// Throws  Error 64 or 66
std::vector<std::filesystem::path> named_files(DatasetOptions const& options);

} // namespace lockstep::data
