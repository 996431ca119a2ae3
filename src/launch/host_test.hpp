#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::launch {

/// What a test of this host has found.
struct HostFinding {
    enum class Kind {
        told,  ///< nothing that makes the host worse than others: a disk that is full
        unfit, ///< the host cannot be trained on, if no other host has the same
        wrong  ///< memory or a processor gives wrong bits
    };
    Kind kind = Kind::told;
    std::string text; ///< "disk: …"
};

/// The text of `kind` as `lockstep probe` prints it.
char const* name_of(HostFinding::Kind kind);

/// Tests memory, the disk of `directory`, GPUs, a computation whose bits are known on each core,
/// and whether the hosts of `peers` can be reached. Each part has a few seconds: one that hangs is
/// a finding.
std::vector<HostFinding> test_host(std::filesystem::path const& directory,
                                   std::vector<std::string> const& peers);

/// The bits of the computation, which are the same on any processor.
std::string computed_bits();

} // namespace lockstep::launch
