#include "search/forest.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "draw.hpp"

namespace lockstep::search {

namespace {

using Rows = std::vector<std::vector<double>>;

constexpr std::size_t trees = 64;
constexpr std::size_t min_of_leaf = 2;

/// A regression tree, grown on a sample with repetition; its nodes lie in one array.
class Tree {
  public:
    Tree(Rows const& rows, std::vector<double> const& targets, std::uint64_t number)
        : rows_(rows), targets_(targets) {
        std::vector<std::size_t> sample;
        used_.resize(rows.size());
        for (std::uint64_t at = 0; at < rows.size(); ++at) {
            auto const row =
                static_cast<std::size_t>(draw(number, {0, at}) * static_cast<double>(rows.size()));
            sample.push_back(row);
            used_[row] = true;
        }
        grow(sample);
    }

    bool has_seen(std::size_t row) const { return used_[row]; }

    double predict(std::vector<double> const& row) const {
        std::size_t at = 0;
        while (nodes_[at].low != 0) {
            auto const& node = nodes_[at];
            at = row[node.column] <= node.threshold ? node.low : node.high;
        }
        return nodes_[at].mean;
    }

  private:
    struct Node {
        double mean = 0;
        std::size_t column = 0;
        double threshold = 0;
        std::size_t low = 0; ///< 0: a leaf
        std::size_t high = 0;
    };
    struct Split {
        double gain = 0;
        std::size_t column = 0;
        double threshold = 0;
    };

    std::size_t grow(std::vector<std::size_t> const& sample) {
        auto const own = nodes_.size();
        nodes_.emplace_back();
        double sum = 0;
        for (auto const row : sample) {
            sum += targets_[row];
        }
        nodes_[own].mean = sum / static_cast<double>(sample.size());
        auto const split = best_split(sample, sum);
        if (split.gain <= 0) {
            return own;
        }
        std::vector<std::size_t> low;
        std::vector<std::size_t> high;
        for (auto const row : sample) {
            (rows_[row][split.column] <= split.threshold ? low : high).push_back(row);
        }
        auto const below = grow(low);
        auto const above = grow(high);
        nodes_[own].column = split.column;
        nodes_[own].threshold = split.threshold;
        nodes_[own].low = below;
        nodes_[own].high = above;
        return own;
    }

    Split best_split(std::vector<std::size_t> sample, double sum) const {
        Split best;
        auto const count = static_cast<double>(sample.size());
        for (std::size_t column = 0; column < rows_.front().size(); ++column) {
            std::ranges::stable_sort(sample, {}, [&](auto row) { return rows_[row][column]; });
            double below = 0;
            for (std::size_t at = 1; at < sample.size(); ++at) {
                below += targets_[sample[at - 1]];
                auto const left = rows_[sample[at - 1]][column];
                auto const right = rows_[sample[at]][column];
                if (at < min_of_leaf || sample.size() - at < min_of_leaf || left == right) {
                    continue;
                }
                auto const n = static_cast<double>(at);
                auto const gain = below * below / n + (sum - below) * (sum - below) / (count - n) -
                                  sum * sum / count;
                if (gain > best.gain * (1 + 1e-12) + 1e-15) {
                    auto const middle = (left + right) / 2; // may be rounded to `right`
                    best = {gain, column, middle < right ? middle : left};
                }
            }
        }
        return best;
    }

    Rows const& rows_;
    std::vector<double> const& targets_;
    std::vector<Node> nodes_;
    std::vector<bool> used_;
};

} // namespace

std::vector<double> permutation_importance(Rows const& rows, std::vector<double> const& targets) {
    auto const columns = rows.empty() ? 0 : rows.front().size();
    std::vector<double> importance(columns);
    if (rows.size() < 4) {
        return importance;
    }
    for (std::uint64_t number = 0; number < trees; ++number) {
        Tree const tree(rows, targets, number);
        std::vector<std::size_t> unseen;
        for (std::size_t row = 0; row < rows.size(); ++row) {
            if (!tree.has_seen(row)) {
                unseen.push_back(row);
            }
        }
        for (std::size_t column = 0; column < columns && !unseen.empty(); ++column) {
            auto shuffled = unseen;
            std::ranges::stable_sort(shuffled, {}, [&](auto row) {
                return draw(number, {1, column, row});
            });
            for (std::size_t at = 0; at < unseen.size(); ++at) {
                auto row = rows[unseen[at]];
                auto const target = targets[unseen[at]];
                auto const before = std::pow(tree.predict(row) - target, 2);
                row[column] = rows[shuffled[at]][column];
                importance[column] += std::pow(tree.predict(row) - target, 2) - before;
            }
        }
    }
    for (auto& each : importance) {
        each = std::max(each, 0.0);
    }
    auto const total = std::accumulate(importance.begin(), importance.end(), 0.0);
    for (auto& each : importance) {
        each = total > 0 ? each / total : 0;
    }
    return importance;
}

} // namespace lockstep::search
