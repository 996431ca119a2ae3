#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/progress.hpp"
#include "lockstep/base/error.hpp"

#include <new>
#include <stdexcept>

#include "catch.hpp"
#include "world.hpp"

using namespace lockstep;

namespace {

/// What a status reduction ended with, with the same words on every rank.
struct Verdict {
    bool agreed_error = false;
    int rank = -1;
    ExitCode code = ExitCode::ok;
    std::string message;
    std::string cause;
};

Verdict reduce(std::function<void()> const& work) {
    try {
        comm::agree(test::world(), "testing", work);
    } catch (AgreedError const& error) {
        return {true, error.rank(), error.code(), error.what(), error.cause()};
    }
    return {};
}

bool same_everywhere(std::string const& text) {
    auto root = text;
    comm::broadcast_text(test::world(), root);
    return comm::all_ranks(test::world(), root == text);
}

} // namespace

TEST_CASE("where all ranks succeed it returns") {
    int done = 0;
    CHECK_FALSE(reduce([&] { done = 1; }).agreed_error);
    CHECK(done == 1);
}

TEST_CASE("whichever rank fails, all ranks throw its error, with rank, host and phase") {
    for (int failing = 0; failing < test::world().size(); ++failing) {
        auto const verdict = reduce([&] {
            if (test::world().rank() == failing) {
                throw Error(ExitCode::no_input,
                            {concat("no file ", failing), "it is missing", "Make it"});
            }
        });
        CHECK(verdict.agreed_error);
        CHECK(verdict.rank == failing);
        CHECK(verdict.code == ExitCode::no_input);
        CHECK(verdict.message == concat("no file ", failing, ": it is missing. Make it"));
        CHECK(verdict.cause.find(concat("rank ", failing, " (")) == 0);
        CHECK(verdict.cause.find("in testing") != std::string::npos);
        CHECK(same_everywhere(verdict.message + verdict.cause));
    }
}

TEST_CASE("a failure in the midst of a run is told with its step") {
    auto const& world = test::world();
    comm::set_step(world, 7);
    auto const verdict = reduce([] { throw Error(ExitCode::data, {"damaged", "", ""}); });
    comm::set_step(world, 0);
    CHECK(verdict.cause.ends_with(") in testing at step 7"));
}

TEST_CASE("of several failures all ranks throw that of the lowest rank") {
    auto const& world = test::world();
    int const first = world.size() > 1 ? 1 : 0;
    auto const verdict = reduce([&] {
        if (world.rank() >= first) {
            throw Error(ExitCode::io, {concat("failure of rank ", world.rank()), "", ""});
        }
    });
    CHECK(verdict.rank == first);
    CHECK(verdict.message == concat("failure of rank ", first));
}

TEST_CASE("errors that are not ours keep their meaning: memory is 71, the rest 70") {
    int const last = test::world().size() - 1;
    auto const fail_on_last = [&](auto const& error) {
        return reduce([&] {
                   if (test::world().rank() == last) {
                       throw error;
                   }
               })
            .code;
    };
    CHECK(fail_on_last(std::bad_alloc()) == ExitCode::memory);
    CHECK(fail_on_last(std::runtime_error("broken")) == ExitCode::software);
    CHECK(fail_on_last(42) == ExitCode::software);
}

TEST_CASE(
    "status reductions can follow each other, and one inside another's work is agreed as it is") {
    auto const verdict = reduce([&] {
        comm::agree(test::world(), "the inner one", [&] {
            if (test::world().is_root()) {
                throw Error(ExitCode::data, {"damaged", "", ""});
            }
        });
    });
    CHECK(verdict.code == ExitCode::data);
    CHECK(verdict.message == "damaged");
    CHECK_FALSE(reduce([] {}).agreed_error);
}
