#include "data/division.hpp"

#include "base/random.hpp"
#include "data/order.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

namespace lockstep::data {

namespace {

/// The share of a count. With a whole number of per cent, the product is exact.
double share_of(std::int64_t count, double percent) {
    return static_cast<double>(count) * percent / 100;
}

/// As if for the order of an epoch that never comes.
std::uint64_t key_of(std::uint64_t seed, std::size_t of_class) {
    return random_key(seed, Stream::order, {std::numeric_limits<std::uint64_t>::max(), of_class});
}

/// How many of each class are drawn: whole shares, and one more of those with the largest rests
/// until they add up. Equal rests are told apart by the seed, or the first classes would get all.
std::vector<std::int64_t> quotas(std::vector<std::int64_t> const& counts, double percent,
                                 std::uint64_t seed) {
    std::vector<std::int64_t> drawn;
    std::vector<std::tuple<double, std::uint64_t, std::size_t>> rests;
    for (std::size_t i = 0; i < counts.size(); ++i) {
        auto const share = share_of(counts[i], percent);
        drawn.push_back(static_cast<std::int64_t>(share));
        rests.emplace_back(share - std::floor(share), key_of(seed, i), i);
    }
    auto const all = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
    auto left = std::llround(share_of(all, percent)) -
                std::accumulate(drawn.begin(), drawn.end(), std::int64_t{0});
    std::sort(rests.rbegin(), rests.rend());
    for (auto const& [rest, key, i] : rests) {
        if (left > 0 && rest > 0 && drawn[i] + 1 < counts[i]) {
            ++drawn[i];
            --left;
        }
    }
    for (std::size_t i = 0; i < counts.size(); ++i) {
        drawn[i] = std::min(drawn[i], std::max<std::int64_t>(counts[i] - 1, 0));
    }
    return drawn;
}

} // namespace

std::int64_t Division::other_at(std::int64_t i) const {
    // Before number i of the others come the drawn ones whose number among all, less the drawn
    // ones before them, is at most i.
    std::int64_t low = 0;
    auto high = drawn();
    while (low < high) {
        auto const middle = (low + high) / 2;
        if (drawn_at(middle) - middle <= i) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return i + low;
}

Division draw_share(std::int64_t samples, double percent, std::uint64_t seed) {
    return draw_share_of_classes({samples}, percent, seed, [&](auto const& take) {
        std::vector<std::int64_t> const labels(1 << 16, 0);
        for (std::int64_t at = 0; at < samples;) {
            auto const count = std::min(samples - at, static_cast<std::int64_t>(labels.size()));
            take(std::span(labels).first(static_cast<std::size_t>(count)));
            at += count;
        }
    });
}

Division draw_share_of_classes(
    std::vector<std::int64_t> const& counts, double percent, std::uint64_t seed,
    std::function<void(std::function<void(std::span<std::int64_t const>)> const&)> const&
        for_labels) {
    auto drawn_of = quotas(counts, percent, seed);
    std::vector<Permutation> orders; // of the samples of a class, of which the first are drawn
    for (std::size_t i = 0; i < counts.size(); ++i) {
        orders.emplace_back(std::max<std::int64_t>(counts[i], 1), key_of(seed, i));
    }
    std::vector<std::int64_t> seen(counts.size(), 0);
    std::vector<std::int64_t> drawn;
    std::int64_t sample = 0;
    for_labels([&](std::span<std::int64_t const> labels) {
        for (auto const label : labels) {
            auto const of_class = static_cast<std::size_t>(label);
            if (orders[of_class](seen[of_class]++) < drawn_of[of_class]) {
                drawn.push_back(sample);
            }
            ++sample;
        }
    });
    return {sample, std::move(drawn), std::move(drawn_of)};
}

} // namespace lockstep::data
