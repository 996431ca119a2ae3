#include "text/byte_pairs.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <queue>
#include <tuple>

namespace lockstep::text {

namespace {

/// Two tokens; pairs are in the order of their first and then their second.
using Pair = std::uint64_t;

Pair key_of(Token left, Token right) {
    return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32U) |
           static_cast<std::uint32_t>(right);
}

std::pair<Token, Token> tokens_of(Pair pair) {
    return {static_cast<Token>(pair >> 32U), static_cast<Token>(pair & 0xffffffffU)};
}

/// A word's tokens, each of which knows its neighbours.
struct Link {
    Token token = no_token; ///< no_token: it was merged into the one before it
    std::int32_t before = -1;
    std::int32_t after = -1;
};

} // namespace

BytePairs::BytePairs(std::array<Token, 256> const& of_byte, std::span<Merge const> merges)
    : of_byte_(of_byte) {
    merges_.reserve(merges.size());
    std::int32_t place = 0;
    for (auto const& merge : merges) {
        merges_.emplace(key_of(merge.left, merge.right), Found{place++, merge.whole});
    }
}

void BytePairs::encode(std::string_view word, std::vector<Token>& into) const {
    std::vector<Link> links;
    for (auto const byte : word) {
        if (auto const token = of_byte_[static_cast<unsigned char>(byte)]; token != no_token) {
            auto const at = static_cast<std::int32_t>(links.size());
            links.push_back({token, at - 1, at + 1});
        }
    }
    if (links.empty()) {
        return;
    }
    links.back().after = -1;
    struct Candidate {
        std::int32_t place, at;
        Token left, right, whole;
        bool operator>(Candidate const& other) const {
            return std::tie(place, at) > std::tie(other.place, other.at);
        }
    };
    std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> waiting;
    auto const look_at = [&](std::int32_t at) {
        if (at < 0 || links[static_cast<std::size_t>(at)].after < 0) {
            return;
        }
        auto const& left = links[static_cast<std::size_t>(at)];
        auto const right = links[static_cast<std::size_t>(left.after)].token;
        if (auto const found = merges_.find(key_of(left.token, right)); found != merges_.end()) {
            waiting.push({found->second.place, at, left.token, right, found->second.whole});
        }
    };
    for (std::int32_t at = 0; at < static_cast<std::int32_t>(links.size()); ++at) {
        look_at(at);
    }
    while (!waiting.empty()) {
        auto const next = waiting.top();
        waiting.pop();
        auto& left = links[static_cast<std::size_t>(next.at)];
        if (left.token != next.left || left.after < 0 ||
            links[static_cast<std::size_t>(left.after)].token != next.right) {
            continue; // one of them has become another since
        }
        auto& right = links[static_cast<std::size_t>(left.after)];
        left.token = next.whole;
        left.after = right.after;
        right.token = no_token;
        if (left.after >= 0) {
            links[static_cast<std::size_t>(left.after)].before = next.at;
        }
        look_at(left.before);
        look_at(next.at);
    }
    for (auto const& link : links) {
        if (link.token != no_token) {
            into.push_back(link.token);
        }
    }
}

namespace {

/// What is learnt from: all words in one row of cells. A symbol's first cell holds its token and,
/// if it has several, its last one minus their number; between the words there is a gap.
class Learning {
  public:
    Learning(std::map<std::string, std::int64_t> const& words,
             std::array<Token, 256> const& of_byte, Token next)
        : cells_{gap}, lengths_(static_cast<std::size_t>(next), 1) {
        for (auto const& [word, count] : words) {
            begins_.push_back(cells_.size());
            counts_.push_back(count);
            for (auto const byte : word) {
                cells_.push_back(of_byte[static_cast<unsigned char>(byte)]);
            }
            cells_.push_back(gap);
        }
        for (std::size_t at = 1; at < cells_.size(); ++at) {
            add(at - 1, at, count_at(at));
        }
        rank_new();
    }

    /// The pair with the largest count; of several, the one with the smallest numbers.
    std::optional<Pair> commonest() {
        while (!ranking_.empty()) {
            auto const [before, pair] = ranking_.top();
            auto const found = pairs_.find(pair);
            if (found != pairs_.end() && found->second.count == before) {
                return pair;
            }
            ranking_.pop();
            if (found != pairs_.end()) { // pairs of old tokens only become rarer
                ranking_.push({found->second.count, pair});
            }
        }
        return std::nullopt;
    }

    /// Replaces a pair wherever it occurs, from the left to the right.
    void merge(Pair pair, Token whole) {
        auto const [left, right] = tokens_of(pair);
        auto const length =
            lengths_[static_cast<std::size_t>(left)] + lengths_[static_cast<std::size_t>(right)];
        lengths_.push_back(length);
        auto const places = std::move(pairs_.at(pair).places);
        for (std::size_t const at : places) {
            auto const second = after(at);
            if (cells_[at] != left || cells_[second] != right) {
                continue; // one of them has become another since
            }
            auto const before = cells_[at - 1] < -1 && cells_[at - 1] != gap
                                    ? at - static_cast<std::size_t>(-cells_[at - 1])
                                    : at - 1;
            auto const behind = after(second);
            auto const times = count_at(at);
            add(before, at, -times);
            add(at, second, -times);
            add(second, behind, -times);
            cells_[second] = inside;
            cells_[at] = whole;
            cells_[behind - 1] = -length;
            add(before, at, times);
            add(at, behind, times);
        }
        rank_new();
    }

  private:
    static constexpr Token gap = std::numeric_limits<Token>::min();
    static constexpr Token inside = -1;

    struct Found {
        std::int64_t count = 0;
        std::vector<std::uint32_t> places; ///< of the first token; the pair was, or is, there
    };
    struct Rank {
        std::int64_t count;
        Pair pair;
        bool operator<(Rank const& other) const {
            return std::pair(count, other.pair) < std::pair(other.count, pair);
        }
    };

    std::size_t after(std::size_t at) const {
        auto const token = cells_[at];
        return token < 0 ? at + 1
                         : at + static_cast<std::size_t>(lengths_[static_cast<std::size_t>(token)]);
    }

    /// How often the word of this cell occurs.
    std::int64_t count_at(std::size_t at) const {
        auto const next = std::upper_bound(begins_.begin(), begins_.end(), at);
        return counts_[static_cast<std::size_t>(next - begins_.begin() - 1)];
    }

    /// Counts what the cells of two neighbours hold, unless one of them is a gap.
    void add(std::size_t left, std::size_t right, std::int64_t times) {
        if (cells_[left] < 0 || cells_[right] < 0) {
            return;
        }
        auto const pair = key_of(cells_[left], cells_[right]);
        auto const [found, added] = pairs_.try_emplace(pair);
        found->second.count += times;
        if (times > 0) {
            found->second.places.push_back(static_cast<std::uint32_t>(left));
        }
        if (added) {
            new_.push_back(pair);
        } else if (found->second.count == 0) {
            pairs_.erase(found);
        }
    }

    void rank_new() {
        for (auto const pair : new_) {
            if (auto const found = pairs_.find(pair); found != pairs_.end()) {
                ranking_.push({found->second.count, pair});
            }
        }
        new_.clear();
    }

    std::vector<Token> cells_;
    std::vector<Token> lengths_;      ///< in cells, of each token
    std::vector<std::size_t> begins_; ///< of the words, in cells
    std::vector<std::int64_t> counts_;
    std::unordered_map<Pair, Found> pairs_;
    std::vector<Pair> new_;             ///< not ranked yet
    std::priority_queue<Rank> ranking_; ///< with the counts that they had
};

} // namespace

std::vector<Merge> learn_merges(std::map<std::string, std::int64_t> const& words,
                                std::array<Token, 256> const& of_byte, Token next,
                                std::int64_t tokens, std::function<void()> const& before_merge) {
    Learning learning(words, of_byte, next);
    std::vector<Merge> merges;
    while (next < tokens) {
        before_merge();
        auto const pair = learning.commonest();
        if (!pair) {
            break;
        }
        auto const [left, right] = tokens_of(*pair);
        merges.push_back({left, right, next});
        learning.merge(*pair, next++);
    }
    return merges;
}

} // namespace lockstep::text
