#include "data/division.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "catch.hpp"

using namespace lockstep::data;

namespace {

using Labels = std::vector<std::int64_t>;

Labels counts_of(Labels const& labels, std::size_t classes) {
    Labels counts(classes, 0);
    for (auto const label : labels) {
        ++counts[static_cast<std::size_t>(label)];
    }
    return counts;
}

Division by_class(Labels const& labels, std::size_t classes, double percent, std::uint64_t seed,
                  std::size_t at_once = 7) {
    return draw_share_of_classes(counts_of(labels, classes), percent, seed, [&](auto const& take) {
        for (std::size_t at = 0; at < labels.size(); at += at_once) {
            take(std::span(labels).subspan(at, std::min(at_once, labels.size() - at)));
        }
    });
}

Labels drawn_of(Division const& division) {
    Labels drawn;
    for (std::int64_t i = 0; i < division.drawn(); ++i) {
        drawn.push_back(division.drawn_at(i));
    }
    return drawn;
}

void check_parts(Division const& division, std::int64_t samples) {
    auto const drawn = drawn_of(division);
    Labels others;
    for (std::int64_t i = 0; i < division.others(); ++i) {
        others.push_back(division.other_at(i));
    }
    CHECK(std::is_sorted(drawn.begin(), drawn.end()));
    CHECK(std::is_sorted(others.begin(), others.end()));
    std::set<std::int64_t> all(drawn.begin(), drawn.end());
    all.insert(others.begin(), others.end());
    CHECK(static_cast<std::int64_t>(drawn.size() + others.size()) == samples);
    CHECK(static_cast<std::int64_t>(all.size()) == samples);
    CHECK((all.empty() || (*all.begin() == 0 && *all.rbegin() == samples - 1)));
}

} // namespace

TEST_CASE("every sample is in one of the parts, whatever the share") {
    for (std::int64_t const samples : {1, 2, 3, 10, 999, 70'000}) {
        for (double const percent : {0.5, 1.0, 10.0, 29.0, 50.0, 99.5}) {
            CAPTURE(samples, percent);
            auto const division = draw_share(samples, percent, 3);
            check_parts(division, samples);
            CHECK(division.drawn() <=
                  std::max<std::int64_t>(std::llround(static_cast<double>(samples) * percent / 100),
                                         0));
            CHECK(division.others() >= 1);
        }
    }
    CHECK(draw_share(60'000, 10, 0).drawn() == 6'000);
    CHECK(draw_share(60'000, 0.5, 0).drawn() == 300);
}

TEST_CASE("the share of each class is that of all, however the samples lie") {
    Labels labels; // 1,000 of 0, 200 of 1, 33 of 2, 1 of 3, none of 4
    for (auto const& [label, count] : {std::pair{0, 1000}, {1, 200}, {2, 33}, {3, 1}}) {
        labels.insert(labels.end(), static_cast<std::size_t>(count), label);
    }
    auto const division = by_class(labels, 5, 10, 0);
    check_parts(division, 1234);
    Labels found(5, 0);
    for (auto const sample : drawn_of(division)) {
        ++found[static_cast<std::size_t>(labels[static_cast<std::size_t>(sample)])];
    }
    CHECK(found[0] == 100);
    CHECK(found[1] == 20);
    CHECK((found[2] == 3 || found[2] == 4)); // the share of all is rounded
    CHECK(found[3] == 0);                    // the only one is to be learnt
    CHECK(found[4] == 0);
    CHECK(found == division.drawn_of_class());
}

TEST_CASE("of many small classes as many samples are drawn as of one large one") {
    Labels labels; // 1,000 classes of 4
    for (int i = 0; i < 4000; ++i) {
        labels.push_back(i % 1000);
    }
    auto const drawn = drawn_of(by_class(labels, 1000, 10, 5));
    CHECK(drawn.size() == 400);
    auto const first_half = std::count_if(drawn.begin(), drawn.end(), [&](std::int64_t sample) {
        return labels[static_cast<std::size_t>(sample)] < 500;
    });
    CHECK(first_half > 140); // not the first classes alone, or the last
    CHECK(first_half < 260);
}

TEST_CASE("a division is a function of the labels, the share and the seed") {
    Labels labels(1000);
    for (std::size_t i = 0; i < labels.size(); ++i) {
        labels[i] = static_cast<std::int64_t>(i * i % 7);
    }
    auto const first = drawn_of(by_class(labels, 7, 10, 1));
    CHECK(first == drawn_of(by_class(labels, 7, 10, 1, 1000)));
    CHECK(first != drawn_of(by_class(labels, 7, 10, 2)));
    CHECK(drawn_of(draw_share(1000, 10, 1)) != drawn_of(draw_share(1000, 10, 2)));
}
