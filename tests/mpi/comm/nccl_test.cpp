#include "comm/collectives.hpp"
#include "comm/device_communicator.hpp"
#include "comm/nccl.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <type_traits>

#include "catch.hpp"
#include "error_of.hpp"
#include "world.hpp"

using namespace lockstep;

static_assert(!std::is_copy_constructible_v<comm::DeviceCommunicator>);
static_assert(std::is_nothrow_move_constructible_v<comm::DeviceCommunicator>);

TEST_CASE("NCCL's id, made without a GPU, is the same on all ranks") {
    auto const& world = test::world();
    auto const* const nccl = comm::nccl_library();
    if (nccl == nullptr) {
        CHECK(comm::collective_library("cuda") == nullptr);
        CHECK(comm::collective_libraries_text() == "no NCCL");
        return;
    }
    CHECK(comm::collective_library("cuda") == nccl);
    CHECK(comm::collective_library("cpu") == nullptr);
    auto const id = comm::broadcast_unique_id(world, *nccl);
    CHECK(id.size() == 128);
    CHECK(std::any_of(id.begin(), id.end(), [](std::byte byte) { return byte != std::byte{0}; }));
    auto of_root = id;
    comm::broadcast(world, std::span(of_root));
    CHECK(of_root == id);

    auto const another = comm::broadcast_unique_id(world, *nccl);
    CHECK(another != id);
    CHECK(nccl->version().substr(0, 2) == "2.");
}

TEST_CASE("a communicator on a device that is not there is one error 69 on every rank") {
    auto const& world = test::world();
    auto const* const nccl = comm::nccl_library();
    if (nccl == nullptr) {
        return;
    }
    CHECK_FALSE(comm::each_rank_has_own_device(world, *nccl, -1));
    // One rank alone names a device that does not exist; without any device all of them do.
    int const device = world.rank() == world.size() - 1 ? 4711 : 0;
    std::string message;
    auto const code = test::code_of([&] {
        try {
            comm::DeviceCommunicator(world, *nccl, {.device = device, .timeout_seconds = 20});
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
