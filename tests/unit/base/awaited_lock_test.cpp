#include "base/awaited_lock.hpp"

#include <array>
#include <chrono>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "catch.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;

namespace {

/// A process that has the lock, of which only a thread is left, as if a disk kept it.
pid_t ending_holder(std::filesystem::path const& file) {
    std::array<int, 2> ready{};
    REQUIRE(::pipe(ready.data()) == 0);
    pid_t const child = ::fork();
    if (child == 0) {
        FileLock const lock(file);
        std::thread([] {
            std::this_thread::sleep_for(std::chrono::seconds(5));
            ::_exit(0);
        }).detach();
        ::syscall(SYS_exit, ::write(ready[1], "x", 1) == 1 ? 0 : 1);
    }
    char word = 0;
    REQUIRE(::read(ready[0], &word, 1) == 1);
    ::close(ready[0]);
    ::close(ready[1]);
    return child;
}

} // namespace

TEST_CASE("the lock of a process that ends is waited for, however long its disk takes") {
    test::ScratchDir const scratch;
    auto const file = scratch.path() / "lock";
    auto const holder = ending_holder(file);
    CHECK(FileLock(file).is_held_elsewhere());
    int waits = 0;
    CHECK_FALSE(awaited_lock(file, [&] { ++waits; }).is_held_elsewhere());
    CHECK(waits > 0);
    CHECK(::waitpid(holder, nullptr, 0) == holder);
}
