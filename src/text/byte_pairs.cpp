#include "text/byte_pairs.hpp"

#include <algorithm>
#include <queue>
#include <set>
#include <tuple>

namespace lockstep::text {

namespace {

std::uint64_t key_of(Token left, Token right) {
    return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32U) |
           static_cast<std::uint32_t>(right);
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

using Pair = std::pair<Token, Token>;

/// What is learnt from: words as tokens so far, and where each pair occurs.
class Learning {
  public:
    Learning(std::map<std::string, std::int64_t> const& words,
             std::array<Token, 256> const& of_byte) {
        for (auto const& [word, count] : words) {
            std::vector<Token> tokens;
            for (auto const byte : word) {
                tokens.push_back(of_byte[static_cast<unsigned char>(byte)]);
            }
            add(tokens, words_.size(), count);
            words_.push_back({std::move(tokens), count});
        }
        for (auto const& [pair, count] : counts_) {
            ranking_.emplace(-count, pair);
        }
    }

    bool has_pair() const { return !ranking_.empty(); }

    Pair commonest() const { return ranking_.begin()->second; }

    /// Replaces a pair wherever it occurs.
    void merge(Pair pair, Token whole) {
        changed_.clear();
        for (auto const number : places_[pair]) {
            auto& [tokens, count] = words_[number];
            add(tokens, number, -count);
            std::vector<Token> merged;
            for (std::size_t i = 0; i < tokens.size(); ++i) {
                bool const here = i + 1 < tokens.size() && tokens[i] == pair.first &&
                                  tokens[i + 1] == pair.second;
                merged.push_back(here ? whole : tokens[i]);
                i += here ? 1 : 0;
            }
            tokens = std::move(merged);
            add(tokens, number, count);
        }
        places_.erase(pair);
        for (auto const& [changed, before] : changed_) {
            ranking_.erase({-before, changed});
            if (auto const now = counts_[changed]; now > 0) {
                ranking_.emplace(-now, changed);
            } else {
                counts_.erase(changed);
            }
        }
    }

  private:
    struct Word {
        std::vector<Token> tokens;
        std::int64_t count = 0;
    };

    void add(std::vector<Token> const& tokens, std::size_t number, std::int64_t count) {
        for (std::size_t i = 1; i < tokens.size(); ++i) {
            Pair const pair{tokens[i - 1], tokens[i]};
            auto& sum = counts_[pair];
            changed_.emplace(pair, sum);
            sum += count;
            if (count > 0) {
                places_[pair].insert(number);
            }
        }
    }

    std::vector<Word> words_;
    std::map<Pair, std::int64_t> counts_;
    std::map<Pair, std::set<std::size_t>> places_; ///< numbers of words that have or had it
    std::set<std::pair<std::int64_t, Pair>> ranking_;
    std::map<Pair, std::int64_t> changed_; ///< with what they counted before
};

} // namespace

std::vector<Merge> learn_merges(std::map<std::string, std::int64_t> const& words,
                                std::array<Token, 256> const& of_byte, Token next,
                                std::int64_t tokens) {
    Learning learning(words, of_byte);
    std::vector<Merge> merges;
    while (next < tokens && learning.has_pair()) {
        auto const pair = learning.commonest();
        merges.push_back({pair.first, pair.second, next});
        learning.merge(pair, next++);
    }
    return merges;
}

} // namespace lockstep::text
