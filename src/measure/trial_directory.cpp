#include "measure/trial_directory.hpp"

#include "base/file.hpp"
#include "base/partial_file.hpp"
#include "base/text.hpp"
#include "checkpoint/reader.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/checkpoint/verify.hpp"
#include "lockstep/comm/session.hpp"

#include <chrono>
#include <thread>

namespace lockstep::measure {

namespace {

void await_removal(std::filesystem::path const& path) noexcept {
    constexpr int looks = 40;
    std::error_code failure;
    for (int look = 0; look < looks && std::filesystem::exists(path, failure); ++look) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
}

} // namespace

std::unique_ptr<CleanUp> removal_by_signal(comm::Communicator const& world,
                                           std::filesystem::path const& path) {
    auto const undo = world.is_root() ? remove_tree : await_removal;
    return std::make_unique<CleanUp>([undo, path] { undo(path); });
}

void in_trial_directory(comm::Communicator const& world, std::filesystem::path const& parent,
                        std::function<void(std::filesystem::path const&)> const& work) {
    std::string place;
    std::unique_ptr<CleanUp> removal;
    comm::agree(world, "making a directory for a trial", [&] {
        if (world.is_root()) {
            auto const path = parent / concat("lockstep-bench-", new_token());
            removal = removal_by_signal(world, path);
            make_directories(path);
            place = path.string();
        }
    });
    comm::broadcast_text(world, place);
    if (!removal) {
        removal = removal_by_signal(world, place);
    }
    std::optional<AgreedError> failure;
    try {
        work(place);
    } catch (AgreedError const& error) {
        failure = error;
    }
    comm::barrier(world); // nobody still reads what is removed
    if (world.is_root()) {
        remove_tree(place);
    }
    if (failure) {
        throw AgreedError(*failure);
    }
}

} // namespace lockstep::measure
