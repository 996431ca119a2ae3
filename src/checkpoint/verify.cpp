#include "lockstep/checkpoint/verify.hpp"

#include "lockstep/base/error.hpp"
#include "lockstep/base/text.hpp"
#include "lockstep/checkpoint/seal.hpp"
#include "lockstep/comm/agree.hpp"

#include <algorithm>
#include <optional>

namespace lockstep::checkpoint {

namespace {

/// Every `stride`th block from `first` on.
struct Share {
    std::uint64_t first = 0;
    std::uint64_t stride = 1;
};

std::optional<Damage> length_damage(std::uint64_t length, std::uint64_t sealed) {
    if (length < sealed) {
        return Damage{length, sealed - 1,
                      concat("the file was cut short at byte ", length, " of ", sealed)};
    }
    if (length > sealed) {
        return Damage{sealed, length - 1,
                      concat("the file was sealed with ", sealed, " bytes and has ", length)};
    }
    return std::nullopt;
}

std::vector<Damage> damages(File const& file, Share share) {
    Seal seal;
    try {
        seal = read_seal(file);
    } catch (Error const& error) {
        if (error.code() != ExitCode::data) {
            throw;
        }
        return {{0, seal_bytes - 1, error.text().why}};
    }
    std::vector<Damage> found;
    auto const length = file.size();
    if (auto const damage = length_damage(length, seal.length)) {
        found.push_back(*damage);
    }
    for (auto block = share.first; block < seal.hashes.size(); block += share.stride) {
        bool const whole = seal.last_byte(block) < length;
        if (whole && hash_of_block(file, seal, block) != seal.hashes[block]) {
            found.push_back({seal.first_byte(block), seal.last_byte(block),
                             concat("block ", block, " has changed since it was sealed")});
        }
    }
    return found;
}

} // namespace

std::vector<Damage> verify(std::filesystem::path const& path) {
    return damages(File::open_read(path), {});
}

void verify_together(comm::Communicator const& comm, std::filesystem::path const& path) {
    Share const share{static_cast<std::uint64_t>(comm.rank()),
                      static_cast<std::uint64_t>(comm.size())};
    comm::agree(comm, "verifying a checkpoint", [&] {
        auto const found = damages(File::open_read(path), share);
        if (!found.empty()) {
            auto const& first = found.front();
            throw Error(ExitCode::data, {concat(path.string(), " is damaged"),
                                         concat(first.what, " (bytes ", first.first_byte, " to ",
                                                first.last_byte, ")"),
                                         "Use an older checkpoint, or copy the file again"});
        }
    });
}

} // namespace lockstep::checkpoint
