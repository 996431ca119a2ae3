#include "base/random.hpp"
#include "task/ctc_decoding.hpp"

#include <cmath>
#include <map>

#include "catch.hpp"

using namespace lockstep;
using Symbols = std::vector<std::int64_t>;

namespace {

constexpr std::int64_t blank = 3; // after the symbols 0, 1, 2

/// Log-probabilities of frames in which each of these is certain, almost.
std::vector<float> certain(Symbols const& path) {
    std::vector<float> scores;
    for (auto const symbol : path) {
        for (std::int64_t other = 0; other <= blank; ++other) {
            scores.push_back(std::log(other == symbol ? 0.97F : 0.01F));
        }
    }
    return scores;
}

std::vector<float> drawn(std::int64_t frames, std::uint64_t key) {
    std::vector<float> scores;
    for (std::int64_t t = 0; t < frames; ++t) {
        std::vector<double> weights;
        double sum = 0;
        for (std::int64_t symbol = 0; symbol <= blank; ++symbol) {
            key = mixed(key);
            weights.push_back(std::exp(2 * static_cast<double>(key >> 11) / (1ULL << 53)));
            sum += weights.back();
        }
        for (auto const weight : weights) {
            scores.push_back(static_cast<float>(std::log(weight / sum)));
        }
    }
    return scores;
}

Symbols collapsed(Symbols const& path) {
    Symbols symbols;
    auto last = blank;
    for (auto const symbol : path) {
        if (symbol != last && symbol != blank) {
            symbols.push_back(symbol);
        }
        last = symbol;
    }
    return symbols;
}

/// The probability of every transcript: the sum over all alignments, each looked at.
std::map<Symbols, double> all_transcripts(task::FrameScores const& scores) {
    std::map<Symbols, double> found;
    Symbols path(static_cast<std::size_t>(scores.frames()), 0);
    while (true) {
        double probability = 0;
        for (std::size_t t = 0; t < path.size(); ++t) {
            probability += static_cast<double>(
                scores.frame(static_cast<std::int64_t>(t))[static_cast<std::size_t>(path[t])]);
        }
        found[collapsed(path)] += std::exp(probability);
        std::size_t at = 0;
        while (at < path.size() && ++path[at] > blank) {
            path[at++] = 0;
        }
        if (at == path.size()) {
            return found;
        }
    }
}

} // namespace

TEST_CASE("repetitions and blanks are no symbols, but a blank parts two of a kind") {
    Symbols const path{blank, 0, 0, blank, 0, 1, 1, 2, blank, blank, 2};
    auto const scores = certain(path);
    Symbols const expected{0, 0, 1, 2, 2};
    CHECK(task::decode_greedily({scores, blank}) == expected);
    CHECK(task::decode_by_prefixes({scores, blank}, 4) == expected);
    CHECK(task::decode_by_prefixes({scores, blank}, 1) == expected);
    CHECK(task::decode_greedily({{}, blank}).empty());
    CHECK(task::decode_by_prefixes({{}, blank}, 4).empty());
}

TEST_CASE("a beam that is wide enough finds the most probable transcript of all") {
    int other_than_greedy = 0;
    for (std::uint64_t key = 1; key <= 40; ++key) {
        CAPTURE(key);
        auto const values = drawn(6, key);
        task::FrameScores const scores{values, blank};
        auto const all = all_transcripts(scores);
        auto const best = std::max_element(all.begin(), all.end(),
                                           [](auto& a, auto& b) { return a.second < b.second; });
        auto const greedy = task::decode_greedily(scores);
        CHECK(task::decode_by_prefixes(scores, 4096) == best->first);
        CHECK(all.at(task::decode_by_prefixes(scores, 8)) >= all.at(greedy));
        other_than_greedy += greedy != best->first ? 1 : 0;
    }
    CHECK(other_than_greedy > 10);
}

TEST_CASE("what is impossible stays impossible") {
    auto const never = -std::numeric_limits<float>::infinity();
    std::vector<float> const scores{0,     never, never, never, never, never,
                                    never, 0,     0,     never, never, never};
    CHECK(task::decode_by_prefixes({scores, blank}, 8) == Symbols{0, 0});
}
