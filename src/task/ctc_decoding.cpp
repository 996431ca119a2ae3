#include "task/ctc_decoding.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>

namespace lockstep::task {

std::vector<std::int64_t> decode_greedily(FrameScores const& scores) {
    std::vector<std::int64_t> symbols;
    auto last = scores.symbols;
    for (std::int64_t t = 0; t < scores.frames(); ++t) {
        auto const frame = scores.frame(t);
        auto const best = std::max_element(frame.begin(), frame.end()) - frame.begin();
        if (best != last && best != scores.symbols) {
            symbols.push_back(best);
        }
        last = best;
    }
    return symbols;
}

namespace {

constexpr double impossible = -std::numeric_limits<double>::infinity();

/// log(exp(a) + exp(b))
double log_sum(double a, double b) {
    auto const more = std::max(a, b);
    return more == impossible ? impossible : more + std::log1p(std::exp(std::min(a, b) - more));
}

/// The beginning of a transcript: a node of the tree of all that were looked at.
struct Prefix {
    std::size_t parent = 0;
    std::int64_t last = -1; ///< symbol; -1: the empty one
    /// Logarithms of the probability of its alignments so far that end in a blank, and in a symbol;
    /// and the same with the frame that is being read.
    double in_blank = impossible;
    double in_symbol = impossible;
    double next_in_blank = impossible;
    double next_in_symbol = impossible;

    double probability() const { return log_sum(in_blank, in_symbol); }
};

class PrefixSearch {
  public:
    PrefixSearch(FrameScores const& scores, std::size_t beam) : scores_(scores), beam_(beam) {
        prefixes_.push_back({.in_blank = 0});
    }

    std::vector<std::int64_t> best() {
        for (std::int64_t t = 0; t < scores_.frames(); ++t) {
            read(scores_.frame(t));
        }
        std::vector<std::int64_t> symbols;
        for (auto at = kept_.front(); at != 0; at = prefixes_[at].parent) {
            symbols.push_back(prefixes_[at].last);
        }
        return {symbols.rbegin(), symbols.rend()};
    }

  private:
    void read(std::span<float const> frame) {
        reached_.clear();
        for (auto const at : kept_) {
            extend(at, frame);
        }
        for (auto const at : kept_) {
            prefixes_[at].in_blank = prefixes_[at].in_symbol = impossible;
        }
        std::sort(reached_.begin(), reached_.end());
        reached_.erase(std::unique(reached_.begin(), reached_.end()), reached_.end());
        for (auto const at : reached_) {
            auto& prefix = prefixes_[at];
            prefix.in_blank = std::exchange(prefix.next_in_blank, impossible);
            prefix.in_symbol = std::exchange(prefix.next_in_symbol, impossible);
        }
        std::stable_sort(reached_.begin(), reached_.end(), [&](std::size_t a, std::size_t b) {
            return prefixes_[a].probability() > prefixes_[b].probability();
        });
        reached_.resize(std::min(reached_.size(), beam_));
        kept_ = reached_;
    }

    void extend(std::size_t at, std::span<float const> frame) {
        auto const now = prefixes_[at];
        auto const probability = now.probability();
        add(at, &Prefix::next_in_blank,
            probability + static_cast<double>(frame[static_cast<std::size_t>(scores_.symbols)]));
        for (std::int64_t symbol = 0; symbol < scores_.symbols; ++symbol) {
            auto const score = static_cast<double>(frame[static_cast<std::size_t>(symbol)]);
            if (symbol == now.last) { // once more, or again after a blank
                add(at, &Prefix::next_in_symbol, now.in_symbol + score);
                add(child(at, symbol), &Prefix::next_in_symbol, now.in_blank + score);
            } else {
                add(child(at, symbol), &Prefix::next_in_symbol, probability + score);
            }
        }
    }

    void add(std::size_t at, double Prefix::*where, double probability) {
        auto& value = prefixes_[at].*where;
        value = log_sum(value, probability);
        reached_.push_back(at);
    }

    std::size_t child(std::size_t parent, std::int64_t symbol) {
        auto const key =
            parent * static_cast<std::size_t>(scores_.symbols) + static_cast<std::size_t>(symbol);
        auto const [found, is_new] = children_.try_emplace(key, prefixes_.size());
        if (is_new) {
            prefixes_.push_back({.parent = parent, .last = symbol});
        }
        return found->second;
    }

    FrameScores scores_;
    std::size_t beam_;
    std::vector<Prefix> prefixes_;
    std::unordered_map<std::size_t, std::size_t> children_; ///< by parent and symbol
    std::vector<std::size_t> kept_{0};
    std::vector<std::size_t> reached_;
};

} // namespace

std::vector<std::int64_t> decode_by_prefixes(FrameScores const& scores, std::size_t beam) {
    return PrefixSearch(scores, std::max<std::size_t>(beam, 1)).best();
}

} // namespace lockstep::task
