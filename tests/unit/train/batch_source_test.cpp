#include "batches/loaded_batches.hpp"
#include "batches/prefetched_batches.hpp"
#include "lockstep/base/error.hpp"

#include "catch.hpp"
#include "scratch_dir.hpp"
#include "small_set.hpp"

using namespace lockstep;

namespace {

using Indices = std::vector<std::int64_t>;

constexpr std::int64_t batches = 20;

std::optional<Indices> requests(std::int64_t k) {
    return k == batches ? std::nullopt : std::optional(Indices{k, (3 * k) % 30, 29 - k});
}

} // namespace

TEST_CASE("prefetched batches are those of the loader, in its order") {
    test::ScratchDir const scratch;
    test::write_small_set(scratch / "a.h5", 30);
    data::Dataset const set({.files = (scratch / "a.h5").string()});
    data::Loader one(set, requests, {2, 3});
    data::Loader other(set, requests, {2, 3});
    auto const plain = train::batches_on(torch::kCPU, one, set.inputs(), set.targets());
    train::PrefetchedBatches prefetched(other, set.inputs(), set.targets(), torch::kCPU);
    for (std::int64_t k = 0; k < batches; ++k) {
        auto const expected = plain->next();
        auto const batch = prefetched.next();
        CHECK(batch.inputs.only().equal(expected.inputs.only()));
        CHECK(batch.targets.only().equal(expected.targets.only()));
    }
    CHECK_THROWS_AS(prefetched.next(), Error);
    CHECK_THROWS_AS(prefetched.next(), Error);
}

TEST_CASE("an error of a prefetched batch is thrown in its turn, and again") {
    test::ScratchDir const scratch;
    test::write_small_set(scratch / "a.h5", 30);
    data::Dataset const set({.files = (scratch / "a.h5").string()});
    data::Loader loader(set,
                        [](std::int64_t k) {
                            if (k == 2) {
                                throw Error(ExitCode::data, {"sample 7", "broken", "mend it"});
                            }
                            return requests(k);
                        },
                        {1, 4});
    train::PrefetchedBatches prefetched(loader, set.inputs(), set.targets(), torch::kCPU);
    CHECK(prefetched.next().samples() == 3);
    CHECK(prefetched.next().samples() == 3);
    CHECK_THROWS_AS(prefetched.next(), Error);
    CHECK_THROWS_AS(prefetched.next(), Error);
}

TEST_CASE("prefetched batches that are given up in the middle end") {
    test::ScratchDir const scratch;
    test::write_small_set(scratch / "a.h5", 30);
    data::Dataset const set({.files = (scratch / "a.h5").string()});
    data::Loader loader(set, requests, {3, 2});
    train::PrefetchedBatches const unused(loader, set.inputs(), set.targets(), torch::kCPU);
    data::Loader another(set, requests, {3, 2});
    train::PrefetchedBatches used(another, set.inputs(), set.targets(), torch::kCPU);
    used.next();
}
