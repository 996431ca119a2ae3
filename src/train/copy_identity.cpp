#include "copy_identity.hpp"

#include "base/clock.hpp"
#include "base/environment.hpp"
#include "base/file.hpp"
#include "base/hash.hpp"
#include "base/own_file.hpp"
#include "base/partial_file.hpp"
#include "base/text.hpp"
#include "checkpoint/memory_copy.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "config/copy_interval.hpp"

#include <array>

namespace lockstep::train {

namespace {

std::uint64_t run_of(RunDirectory const& directory) {
    return hash64(directory.absence() ? directory.continued()
                                      : checkpoints_id(directory.path() / "checkpoints"));
}

} // namespace

/// "auto" is for runs that somebody starts again at once.
bool wants_copies(config::Deck const& deck) {
    auto const every = config::copy_interval(deck.fault_tolerance.memory_copy_every).value();
    return every > 0 || (every < 0 && environment_number<std::int64_t>("LOCKSTEP_RESTARTS") > 0);
}

std::string checkpoints_id(std::filesystem::path const& checkpoints) {
    auto const file = checkpoints / "id";
    if (!std::filesystem::exists(file) || !third_person(file).empty()) {
        write_text_durably(file, concat(utc_now(), "-", new_token()));
    }
    return std::string(trimmed(read_text(file)));
}

std::uint64_t copies_of(std::filesystem::path const& checkpoints) {
    return std::filesystem::exists(checkpoints / "id") ? hash64(checkpoints_id(checkpoints)) : 0;
}

CopyIdentity identify_copies(comm::Communicator const& world, config::Deck const& deck,
                             RunDirectory const* directory) {
    CopyIdentity identity;
    comm::agree(world, "opening the run's directory", [&] {
        if (directory != nullptr && !directory->job().empty() && wants_copies(deck)) {
            identity = {.run = run_of(*directory),
                        .job = hash64(directory->job()),
                        .follows = directory->follows()};
        }
    });
    std::array<std::uint64_t, 3> told{identity.run, identity.job, identity.follows ? 1U : 0U};
    comm::broadcast(world, std::span<std::uint64_t>(told));
    identity = {.run = told[0], .job = told[1], .follows = told[2] != 0};
    if (identity.run != 0 && !identity.follows) { // not what this job is to continue from
        checkpoint::remove_copies(checkpoint::memory_directory, identity.run);
    }
    return identity;
}

} // namespace lockstep::train
