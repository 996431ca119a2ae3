#include "data/loader.hpp"
#include "lockstep/base/error.hpp"

#include "catch.hpp"
#include "scratch_dir.hpp"
#include "small_set.hpp"

using namespace lockstep;
using namespace lockstep::data;

namespace {

using Indices = std::vector<std::int64_t>;

std::optional<Indices> requests(std::int64_t k) {
    if (k >= 20) { // and after it: a worker may be ahead of the one that finds the end
        return std::nullopt;
    }
    if (k % 7 == 3) {
        return Indices{}; // a replica without samples
    }
    return Indices{k, (3 * k) % 30, 29 - k};
}

} // namespace

TEST_CASE("batches come in order whatever the number of workers and the prefetch") {
    test::ScratchDir const scratch;
    test::write_small_set(scratch / "a.h5", 30);
    Dataset const set({.files = (scratch / "a.h5").string()});
    for (int const workers : {1, 2, 5}) {
        for (int const prefetch : {1, 4, 50}) {
            Loader loader(set, requests, {workers, prefetch});
            for (std::int64_t k = 0; k < 20; ++k) {
                auto const& batch = loader.next();
                auto const expected = *requests(k);
                std::vector<float> inputs(expected.size() * 6);
                set.read_inputs(expected, inputs);
                CHECK(batch.indices == expected);
                CHECK(batch.inputs() == inputs);
            }
            CHECK_THROWS_AS(loader.next(), Error);
        }
    }
}

TEST_CASE("a loader that is given up in the middle ends") {
    test::ScratchDir const scratch;
    test::write_small_set(scratch / "a.h5", 30);
    Dataset const set({.files = (scratch / "a.h5").string()});
    Loader loader(set, requests, {3, 2});
    loader.next();
}

TEST_CASE("an error of a worker is thrown where its batch is asked for") {
    test::ScratchDir const scratch;
    test::write_small_set(scratch / "a.h5", 30);
    Dataset const set({.files = (scratch / "a.h5").string()});
    Loader loader(set,
                  [](std::int64_t k) -> std::optional<Indices> {
                      if (k == 2) {
                          throw Error(ExitCode::io, {"broken", "", ""});
                      }
                      return Indices{k};
                  },
                  {2, 4});
    CHECK(loader.next().indices == Indices{0});
    CHECK(loader.next().indices == Indices{1});
    CHECK_THROWS_WITH(loader.next(), "broken");
}
