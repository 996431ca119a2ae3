#include "data/loader.hpp"

#include <chrono>
#include <thread>

#include "catch.hpp"
#include "error_of.hpp"
#include "scratch_dir.hpp"
#include "small_set.hpp"

using namespace lockstep;
using namespace lockstep::data;

namespace {

using Indices = std::vector<std::int64_t>;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

void pause(int milliseconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

struct OpenSet {
    explicit OpenSet(std::uint64_t samples) : path(scratch / "set.h5") {
        test::write_small_set(path, samples);
        set.emplace(DatasetOptions{.files = path.string()});
    }
    test::ScratchDir scratch;
    std::filesystem::path path;
    std::optional<Dataset> set;
};

} // namespace

TEST_CASE("workers that take unlike times still give batches in order") {
    OpenSet const open(64);
    Loader loader(*open.set,
                  [](std::int64_t k) -> std::optional<Indices> {
                      pause(k % 4 == 0 ? 8 : 0); // later batches are ready first
                      return Indices{k % 64};
                  },
                  {4, 6});
    for (std::int64_t k = 0; k < 40; ++k) {
        CHECK(loader.next().indices == Indices{k % 64});
    }
}

TEST_CASE("a batch stays as it is until the next is asked for") {
    OpenSet const open(64);
    for (int const prefetch : {1, 2}) {
        Loader loader(*open.set,
                      [](std::int64_t k) -> std::optional<Indices> {
                          return Indices{k % 64, (k + 1) % 64};
                      },
                      {3, prefetch});
        for (std::int64_t k = 0; k < 12; ++k) {
            auto const& batch = loader.next();
            auto const then = batch.inputs();
            pause(3); // time enough for a worker that would write where it must not
            CHECK(batch.inputs() == then);
            CHECK(batch.indices == Indices{k % 64, (k + 1) % 64});
        }
    }
}

TEST_CASE("a file that is cut short while it is read is an error at once, and nothing hangs") {
    OpenSet const open(5000);
    auto const begin = Clock::now();
    {
        Loader loader(
            *open.set,
            [](std::int64_t k) -> std::optional<Indices> { return Indices{4999 - k % 10}; },
            {5, 3});
        loader.next();
        std::filesystem::resize_file(open.path, 8192);
        // Those made ahead are still handed out; then comes the error.
        auto const error = test::error_of([&] {
            for (int batch = 0; batch < 10; ++batch) {
                loader.next();
            }
        });
        CHECK(error.code() == ExitCode::data);
        CHECK(test::says(error, open.path.string()));
    }
    CHECK(seconds_since(begin) < 10);
}

TEST_CASE("an error in every batch ends the loader whatever the number of workers") {
    OpenSet const open(8);
    for (int const workers : {1, 2, 5}) {
        auto const begin = Clock::now();
        {
            Loader loader(*open.set,
                          [](std::int64_t) -> std::optional<Indices> {
                              throw Error(ExitCode::io, {"no disk", "", ""});
                          },
                          {workers, 2});
            CHECK(test::error_of([&] { loader.next(); }).code() == ExitCode::io);
        }
        CHECK(seconds_since(begin) < 10);
    }
}

TEST_CASE("after the last batch every call is an error, not a wait") {
    OpenSet const open(8);
    for (std::int64_t const batches : {0, 1, 3}) {
        Loader loader(*open.set,
                      [batches](std::int64_t k) -> std::optional<Indices> {
                          return k < batches ? std::optional(Indices{k}) : std::nullopt;
                      },
                      {2, 2});
        for (std::int64_t k = 0; k < batches; ++k) {
            CHECK(loader.next().indices == Indices{k});
        }
        for (int call = 0; call < 4; ++call) {
            CHECK(test::error_of([&] { loader.next(); }).code() == ExitCode::software);
        }
    }
}

TEST_CASE("a batch without samples is handed out as such, between others") {
    OpenSet const open(8);
    Loader loader(
        *open.set,
        [](std::int64_t k) -> std::optional<Indices> { return k == 1 ? Indices{} : Indices{k}; },
        {2, 2});
    CHECK(loader.next().indices == Indices{0});
    auto const& empty = loader.next();
    CHECK(empty.indices.empty());
    CHECK(empty.inputs().empty());
    CHECK(empty.targets().empty());
    CHECK(loader.next().indices == Indices{2});
}
