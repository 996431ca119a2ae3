#include "comm/collectives.hpp"
#include "comm/nccl.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <type_traits>

#include "catch.hpp"
#include "error_of.hpp"
#include "world.hpp"

using namespace lockstep;

static_assert(!std::is_copy_constructible_v<comm::NcclCommunicator>);
static_assert(std::is_nothrow_move_constructible_v<comm::NcclCommunicator>);

TEST_CASE("NCCL's id, made without a GPU, is the same on all ranks; without NCCL it is 69") {
    auto const& world = test::world();
    if (!comm::nccl_available()) {
        CHECK(test::code_of([&] { comm::broadcast_unique_id(world); }) == ExitCode::unavailable);
        CHECK(test::code_of([] { comm::nccl_version(); }) == ExitCode::unavailable);
        CHECK(comm::device_count() == 0);
        return;
    }
    auto const id = comm::broadcast_unique_id(world);
    CHECK(id.size() == 128);
    CHECK(std::any_of(id.begin(), id.end(), [](std::byte byte) { return byte != std::byte{0}; }));
    auto of_root = id;
    comm::broadcast(world, std::span(of_root));
    CHECK(of_root == id);

    auto const another = comm::broadcast_unique_id(world);
    CHECK(another != id);
    CHECK(comm::nccl_version().substr(0, 2) == "2.");
}

TEST_CASE("a communicator on a device that is not there is one error 69 on every rank") {
    auto const& world = test::world();
    // One rank alone names a device that does not exist; without any device all of them do.
    int const device = world.rank() == world.size() - 1 ? 4711 : 0;
    std::string message;
    auto const code = test::code_of([&] {
        try {
            comm::NcclCommunicator(world, {.device = device, .timeout_seconds = 20});
        } catch (Error const& error) {
            message = error.what();
            throw;
        }
    });
    CHECK(code == ExitCode::unavailable);
    CHECK_FALSE(message.empty());
    auto const messages = comm::all_gather_text(world, message);
    CHECK(std::count(messages.begin(), messages.end(), messages.front()) == world.size());
}

TEST_CASE("ranks without a device do not each have their own") {
    CHECK_FALSE(comm::each_rank_has_own_device(test::world(), -1));
}
