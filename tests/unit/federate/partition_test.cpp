#include "federate/partition.hpp"
#include "h5/file.hpp"
#include "h5/text_rows.hpp"

#include <algorithm>
#include <numeric>

#include "catch.hpp"
#include "error_of.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using namespace lockstep::federate;

namespace {

std::vector<std::int64_t> labels_of(std::size_t samples, std::int64_t classes) {
    std::vector<std::int64_t> labels(samples);
    for (std::size_t i = 0; i < samples; ++i) {
        labels[i] = static_cast<std::int64_t>(i) % classes;
    }
    return labels;
}

/// [site][class]
std::vector<std::vector<int>> counts(std::vector<std::int64_t> const& labels,
                                     PartitionOptions const& options) {
    auto const owners = sites_of_samples(labels, options);
    std::vector<std::vector<int>> counts(static_cast<std::size_t>(options.sites),
                                         std::vector<int>(10, 0));
    for (std::size_t i = 0; i < labels.size(); ++i) {
        ++counts[static_cast<std::size_t>(owners[i])][static_cast<std::size_t>(labels[i])];
    }
    return counts;
}

} // namespace

TEST_CASE("even shares are even, drawn ones are not, and each site has a sample") {
    auto const labels = labels_of(6000, 10);
    for (auto const& site : counts(labels, {20, 0, 1})) {
        CHECK(std::ranges::all_of(site, [](int count) { return count == 30; }));
    }
    auto const drawn = counts(labels, {20, 0.3, 1});
    int empty = 0;
    for (auto const& site : drawn) {
        CHECK(std::accumulate(site.begin(), site.end(), 0) > 0);
        empty += static_cast<int>(std::ranges::count_if(site, [](int n) { return n < 6; }));
    }
    CHECK(empty > 50); // of 200: most sites lack many classes
    CHECK(counts(labels, {20, 0.3, 2}) != drawn);
    CHECK(counts(labels, {20, 0.3, 1}) == drawn);
    auto const even = counts(labels, {20, 1e5, 1});
    for (auto const& site : even) {
        CHECK(std::ranges::all_of(site, [](int n) { return n > 20 && n < 40; }));
    }
    for (auto const& site : counts(labels_of(40, 10), {40, 0.01, 1})) {
        CHECK(std::accumulate(site.begin(), site.end(), 0) > 0);
    }
    CHECK(test::code_of([&] { sites_of_samples(labels_of(3, 3), {4, 0, 1}); }) == ExitCode::usage);
}

TEST_CASE("a part holds the rows of its samples") {
    test::ScratchDir const scratch;
    std::vector<float> inputs(3 * 4000);
    std::iota(inputs.begin(), inputs.end(), 0.0F);
    auto const targets = labels_of(4000, 10);
    auto whole = h5::File::create(scratch / "whole.h5");
    whole.create_dataset("inputs", h5::Type::f32, {4000, 3});
    whole.write("inputs", h5::Type::f32, inputs);
    whole.create_dataset("targets", h5::Type::i64, {4000});
    whole.write("targets", h5::Type::i64, targets);
    whole.set_attribute("/", "mean", std::vector<double>{0.5});
    std::vector<std::string> names;
    for (int i = 0; i < 4000; ++i) {
        names.push_back(std::to_string(i) + ".png");
    }
    h5::write_text_rows(whole, "sources", names);
    whole.close();
    std::vector<std::int64_t> const samples{0, 17, 3999};
    write_part(scratch / "whole.h5", {{"inputs", "targets"}}, samples, {"a", "b"},
               scratch / "part.h5");
    auto const part = h5::File::open(scratch / "part.h5");
    std::vector<float> rows(9);
    part.read("inputs", h5::Type::f32, rows);
    CHECK(rows == std::vector<float>{0, 1, 2, 51, 52, 53, 11997, 11998, 11999});
    std::vector<std::int64_t> labels(3);
    part.read("targets", h5::Type::i64, labels);
    CHECK(labels == std::vector<std::int64_t>{0, 7, 9});
    auto sources = h5::TextRows::in(part, "sources").value();
    CHECK(sources.count() == 3);
    CHECK(sources.at(part, 1) == "17.png");
    CHECK(sources.at(part, 2) == "3999.png");
    CHECK(part.number_attribute("/", "mean") == std::vector<double>{0.5});
    CHECK(part.texts_attribute("/", "classes") == std::vector<std::string>{"a", "b"});
}
