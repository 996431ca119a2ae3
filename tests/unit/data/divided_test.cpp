// A data set in two parts: each sample in one of them, with its own inputs, targets and weight.

#include "data/loader.hpp"
#include "data/plan.hpp"
#include "h5/file.hpp"
#include "lockstep/data/dataset.hpp"

#include <algorithm>
#include <map>

#include "catch.hpp"
#include "error_of.hpp"
#include "put.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using namespace lockstep::data;

namespace {

/// Samples `first` and on: sample i is the token i, i % 3 times over, its class i % 5, its weight
/// i + 1. Of class 4 there is sample 4 alone.
void write_set(std::filesystem::path const& path, std::int64_t first, std::int64_t samples) {
    std::vector<std::int64_t> tokens;
    std::vector<std::int64_t> offsets{0};
    std::vector<std::int64_t> numbers;
    std::vector<std::int64_t> classes;
    std::vector<double> weights;
    for (auto i = first; i < first + samples; ++i) {
        tokens.insert(tokens.end(), static_cast<std::size_t>(i % 3), i);
        offsets.push_back(static_cast<std::int64_t>(tokens.size()));
        numbers.push_back(i);
        classes.push_back(i % 5 == 4 && i != 4 ? 3 : i % 5);
        weights.push_back(static_cast<double>(i + 1));
    }
    auto const count = static_cast<std::uint64_t>(samples);
    auto file = h5::File::create(path);
    test::put(file, "number", h5::Type::i64, {count}, numbers);
    test::put(file, "tokens", h5::Type::i64, {tokens.size()}, tokens);
    test::put(file, "tokens_offsets", h5::Type::i64, {offsets.size()}, offsets);
    test::put(file, "class", h5::Type::i64, {count}, classes);
    test::put(file, "weight", h5::Type::f64, {count}, weights);
    file.close();
}

Dataset opened(test::ScratchDir const& scratch, std::string const& targets = "class") {
    write_set(scratch / "a.h5", 0, 130);
    write_set(scratch / "b.h5", 130, 7);
    write_set(scratch / "c.h5", 137, 363);
    return Dataset({.files = (scratch / "*.h5").string(),
                    .inputs = "number, tokens",
                    .targets = targets,
                    .weights = "weight"});
}

/// The numbers of a part's samples, as its batches give them; each sample's fields belong together.
std::vector<std::int64_t> numbers_of(Dataset const& part, std::vector<std::int64_t> indices) {
    Batch batch;
    Scratch scratch;
    batch.indices = std::move(indices);
    part.read(batch, scratch);
    auto const numbers = batch.fields[0].wholes;
    auto const& tokens = batch.fields[1];
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        auto const from = static_cast<std::size_t>(tokens.offsets[i]);
        auto const to = static_cast<std::size_t>(tokens.offsets[i + 1]);
        CHECK(static_cast<std::int64_t>(to - from) == numbers[i] % 3);
        CHECK(std::all_of(tokens.wholes.begin() + static_cast<std::ptrdiff_t>(from),
                          tokens.wholes.begin() + static_cast<std::ptrdiff_t>(to),
                          [&](std::int64_t token) { return token == numbers[i]; }));
        CHECK(part.number_in_files(batch.indices[i]) == numbers[i]);
        if (part.weights()) {
            CHECK((*part.weights())[static_cast<std::size_t>(batch.indices[i])] ==
                  static_cast<double>(numbers[i] + 1));
        }
    }
    return numbers;
}

std::vector<std::int64_t> all_of(Dataset const& part) {
    std::vector<std::int64_t> indices(static_cast<std::size_t>(part.samples()));
    for (std::size_t i = 0; i < indices.size(); ++i) {
        indices[i] = static_cast<std::int64_t>(indices.size() - 1 - i); // not as they lie
    }
    return numbers_of(part, indices);
}

} // namespace

TEST_CASE("two parts of ragged, weighted samples in several files hold each of them once") {
    test::ScratchDir const scratch;
    auto const whole = opened(scratch);
    auto const [train, share] = whole.divided(10, 7);
    auto both = all_of(train);
    auto const drawn = all_of(share);
    CHECK(drawn.size() == 50);
    both.insert(both.end(), drawn.begin(), drawn.end());
    std::sort(both.begin(), both.end());
    REQUIRE(both.size() == 500);
    for (std::size_t i = 0; i < both.size(); ++i) {
        CHECK(both[i] == static_cast<std::int64_t>(i));
    }
    CHECK(share.weights() == nullptr);
    CHECK(train.weights()->size() == 450);
    CHECK(train.class_counts() == std::vector<std::int64_t>{90, 90, 90, 179, 1});
    CHECK(share.class_counts() == std::vector<std::int64_t>{10, 10, 10, 20, 0});
    CHECK(share.classes() == 5);
    CHECK(train.fingerprint() == whole.fingerprint());
    auto const again = opened(scratch).divided(10, 7);
    CHECK(all_of(again.second) == drawn);
    CHECK(all_of(whole.divided(10, 8).second) != drawn);
}

TEST_CASE("a part is learnt once an epoch in every order") {
    test::ScratchDir const scratch;
    auto const [train, share] = opened(scratch).divided(25, 1); // the whole need not stay
    for (auto const shuffle : {Shuffle::full, Shuffle::block, Shuffle::none}) {
        TrainPlan const plan({.samples = train.samples(),
                              .batch = 8,
                              .replicas = 3,
                              .shuffle = shuffle,
                              .blocks = train.blocks(),
                              .seed = 5});
        std::map<std::int64_t, int> learnt;
        for (auto const number : numbers_of(train, plan.indices(2, {0, train.samples()}))) {
            ++learnt[number];
        }
        CHECK(learnt.size() == static_cast<std::size_t>(train.samples()));
        for (auto const number : all_of(share)) {
            CHECK_FALSE(learnt.contains(number));
        }
    }
}

TEST_CASE("targets that are no classes are divided at random") {
    test::ScratchDir const scratch;
    auto const [train, share] = opened(scratch, "weight").divided(10, 7);
    CHECK(share.samples() == 50);
    CHECK(train.samples() == 450);
    CHECK(share.class_counts().empty());
}

TEST_CASE("a share that is no sample is told with the reason") {
    test::ScratchDir const scratch;
    write_set(scratch / "few.h5", 0, 3);
    Dataset const few(
        {.files = (scratch / "few.h5").string(), .inputs = "number", .targets = "class"});
    auto const error = test::error_of([&] { few.divided(10, 0); });
    CHECK(error.code() == ExitCode::usage);
    CHECK(test::says(error, "data.validation = 10 %"));
}
