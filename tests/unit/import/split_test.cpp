#include "base/random.hpp"
#include "h5/element_type.hpp"
#include "h5/file.hpp"
#include "lockstep/base/error.hpp"

#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "error_of.hpp"
#include "importing.hpp"
#include "number_source.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using namespace lockstep::data;
using namespace lockstep::import;

namespace {

std::vector<float> numbers_of(std::filesystem::path const& path) {
    auto const file = h5::File::open(path);
    std::vector<float> values(h5::elements(file.info("inputs").shape));
    file.read("inputs", h5::Type::f32, values);
    return values;
}

/// Items with these labels; those of one group follow each other.
class LabelSource : public test::NumberSource {
  public:
    explicit LabelSource(std::vector<std::int64_t> labels, std::int64_t per_group = 1)
        : NumberSource(std::ssize(labels), per_group), labels_(std::move(labels)) {}
    std::int64_t label(std::int64_t item) const override {
        return labels_[static_cast<std::size_t>(item)];
    }

  private:
    std::vector<std::int64_t> labels_;
};

} // namespace

TEST_CASE("each class is shared out alike, every sample once, and another seed draws others") {
    test::ScratchDir const scratch;
    test::NumberSource const source(3000);
    auto const report =
        test::import_to(scratch / "a", source, {.split = {.shares = {0.8, 0.1, 0.1}}});
    REQUIRE(report.sets.size() == 3);
    CHECK(report.sets[0].name == "train");
    std::multiset<float> seen;
    for (std::size_t s = 0; s < 3; ++s) {
        CHECK(report.sets[s].items == (s == 0 ? 2400 : 300));
        auto const& counts = report.sets[s].class_counts;
        auto const share = static_cast<double>(counts[1]) / static_cast<double>(counts[0]);
        CHECK(share == Approx(0.25).epsilon(0.2)); // items are dealt exactly, samples by chance
        auto const values = numbers_of(report.files[s].path);
        seen.insert(values.begin(), values.end());
    }
    std::multiset<float> all;
    for (int i = 0; i < 3000; ++i) {
        for (int k = 0; k < i % 3; ++k) {
            all.insert(static_cast<float>(i));
        }
    }
    CHECK(seen == all);
    test::import_to(scratch / "b", source, {.split = {.shares = {0.8, 0.1, 0.1}, .seed = 1}});
    CHECK(numbers_of(scratch / "a/test.h5") != numbers_of(scratch / "b/test.h5"));
}

TEST_CASE("a group is never divided between sets") {
    test::ScratchDir const scratch;
    test::NumberSource const source(600, 20);
    auto const report = test::import_to(scratch / "out", source,
                                        {.split = {.shares = {0.6, 0, 0.4}, .by_group = true}});
    REQUIRE(report.sets.size() == 2);
    CHECK(report.sets[0].groups == 18);
    CHECK(report.sets[1].groups == 12);
    std::map<int, std::set<std::size_t>> sets_of_group;
    for (std::size_t s = 0; s < 2; ++s) {
        for (auto const value : numbers_of(report.files[s].path)) {
            sets_of_group[static_cast<int>(value) / 20].insert(s);
        }
    }
    CHECK(sets_of_group.size() == 30);
    for (auto const& [group, sets] : sets_of_group) {
        CHECK(sets.size() == 1);
    }
}

TEST_CASE("small classes are rounded so that the sets have their shares of all items") {
    std::vector<std::vector<double>> const all_shares{
        {0.8, 0.2}, {0.8, 0.1, 0.1}, {0.34, 0.33, 0.33}, {0.5, 0.5}, {0.6, 0, 0.4}};
    for (std::uint64_t run = 0; run < 60; ++run) {
        auto const& shares = all_shares[run % all_shares.size()];
        std::uint64_t drawn = 0;
        auto const draw = [&](std::uint64_t below) {
            return random_key(run, Stream::order, {drawn++}) % below;
        };
        auto const most = 1 + draw(12);
        std::vector<std::int64_t> labels;
        std::vector<double> counts;
        for (std::int64_t label = 0; label < 50; ++label) {
            counts.push_back(static_cast<double>(run < 5 ? 2 : 1 + draw(most)));
            labels.insert(labels.end(), static_cast<std::size_t>(counts.back()), label);
        }
        auto const sets = split_items(LabelSource(labels), {.shares = shares, .seed = run});
        for (auto const& set : sets) {
            auto const share = shares[set.name == "train" ? 0 : set.name == "validation" ? 1 : 2];
            std::vector<double> got(counts.size());
            for (auto const item : set.items) {
                got[static_cast<std::size_t>(labels[static_cast<std::size_t>(item)])] += 1;
            }
            for (std::size_t c = 0; c < counts.size(); ++c) {
                CHECK(std::abs(got[c] - share * counts[c]) < 1 + 1e-9);
            }
            CHECK(std::abs(static_cast<double>(set.items.size()) -
                           share * static_cast<double>(labels.size())) < 2);
        }
    }
}

TEST_CASE("classes of one group each are shared out as the groups allow") {
    std::vector<std::int64_t> labels;
    for (std::int64_t label = 0; label < 10; ++label) {
        labels.insert(labels.end(), 5, label);
    }
    LabelSource const source(labels, 5);
    for (auto const share : {0.5, 0.8}) {
        auto const sets = split_items(source, {.shares = {share, 1 - share}, .by_group = true});
        REQUIRE(sets.size() == 2);
        CHECK(sets[0].items.size() == static_cast<std::size_t>(std::lround(share * 50)));
    }
}

TEST_CASE("shares that are none are refused, and sets that would be empty") {
    test::ScratchDir const scratch;
    test::NumberSource const source(20, 10);
    auto const code_with = [&](std::vector<double> shares, bool by_group) {
        return test::error_of([&] {
                   test::import_to(scratch / "out", source,
                                   {.split = {.shares = shares, .by_group = by_group}});
               })
            .code();
    };
    CHECK(code_with({0.5, 0.6}, false) == ExitCode::usage);
    CHECK(code_with({1.5, -0.5}, false) == ExitCode::usage);
    CHECK(code_with({0.25, 0.25, 0.25, 0.25}, false) == ExitCode::usage);
    CHECK(code_with({0.8, 0.1, 0.1}, true) == ExitCode::usage); // two groups for three sets
}
