#include "measure/trial_directory.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "checkpoint/reader.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/checkpoint/verify.hpp"
#include "lockstep/comm/session.hpp"

#include <unistd.h>

namespace lockstep::measure {

void in_trial_directory(comm::Communicator const& world, std::filesystem::path const& parent,
                        std::function<void(std::filesystem::path const&)> const& work) {
    std::string place;
    comm::agree(world, "making a directory for a trial", [&] {
        if (world.is_root()) {
            auto const path = parent / concat("lockstep-bench-", ::getpid());
            make_directories(path);
            place = path.string();
        }
    });
    comm::broadcast_text(world, place);
    std::optional<AgreedError> failure;
    try {
        work(place);
    } catch (AgreedError const& error) {
        failure = error;
    }
    comm::barrier(world); // nobody still reads what is removed
    if (world.is_root()) {
        std::error_code ignored;
        std::filesystem::remove_all(place, ignored);
    }
    if (failure) {
        throw AgreedError(*failure);
    }
}

} // namespace lockstep::measure
