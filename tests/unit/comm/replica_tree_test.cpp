#include "base/text.hpp"
#include "comm/replica_tree.hpp"
#include "lockstep/base/error.hpp"

#include <cmath>

#include "catch.hpp"

using namespace lockstep;

namespace {

bool never(comm::TreeNode) {
    return false;
}

/// The tree written out: "((0 1) 2)".
std::string written(comm::TreeNode node) {
    std::vector<std::string> texts(static_cast<std::size_t>(node.first + node.count));
    for (std::size_t i = 0; i < texts.size(); ++i) {
        texts[i] = std::to_string(i);
    }
    comm::sum_in_tree_order(node, never, [&](int into, int from) {
        auto& left = texts[static_cast<std::size_t>(into)];
        left = concat("(", left, " ", texts[static_cast<std::size_t>(from)], ")");
    });
    return texts[static_cast<std::size_t>(node.first)];
}

} // namespace

TEST_CASE("the left half of a node is its first (n + 1) / 2 replicas") {
    CHECK(written({0, 1}) == "0");
    CHECK(written({0, 2}) == "(0 1)");
    CHECK(written({0, 3}) == "((0 1) 2)");
    CHECK(written({0, 5}) == "(((0 1) 2) (3 4))");
    CHECK(written({0, 8}) == "(((0 1) (2 3)) ((4 5) (6 7)))");
}

TEST_CASE("ranks host whole subtrees that cover all replicas once, in rank order") {
    for (int replicas = 1; replicas <= 33; ++replicas) {
        for (int ranks = 1; ranks <= replicas; ++ranks) {
            auto const nodes = comm::subtrees_of_ranks(replicas, ranks);
            CHECK(nodes.size() == static_cast<std::size_t>(ranks));
            int next = 0;
            for (auto const& node : nodes) {
                CHECK(node.first == next);
                CHECK(node.count >= 1);
                next += node.count;
            }
            CHECK(next == replicas);
        }
    }
}

TEST_CASE("the sum has one order on any number of ranks") {
    int const replicas = 13;
    std::vector<float> values;
    for (int i = 0; i < replicas; ++i) {
        values.push_back(std::pow(-1.7F, static_cast<float>(i)) / 3);
    }
    auto const add_into = [](std::vector<float>& sums) {
        return [&sums](int into, int from) {
            sums[static_cast<std::size_t>(into)] += sums[static_cast<std::size_t>(from)];
        };
    };
    auto whole = values;
    comm::sum_in_tree_order({0, replicas}, never, add_into(whole));

    for (int ranks = 1; ranks <= replicas; ++ranks) {
        auto const nodes = comm::subtrees_of_ranks(replicas, ranks);
        auto const is_of_a_rank = [&](comm::TreeNode node) {
            return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
        };
        auto sums = values;
        for (auto const& node : nodes) {
            comm::sum_in_tree_order(node, never, add_into(sums));
        }
        comm::sum_in_tree_order({0, replicas}, is_of_a_rank, add_into(sums));
        CHECK(sums[0] == whole[0]);
    }
}

TEST_CASE("a tree sum differs from a running sum where rounding does, and is 0 of nothing") {
    CHECK(comm::tree_sum({}) == 0);
    CHECK(comm::tree_sum(std::vector<double>{2.5}) == 2.5);
    // (1e16 + 1) + (1 - 1e16): in a row it would be 1.
    CHECK(comm::tree_sum(std::vector<double>{1e16, 1, 1, -1e16}) == 0);
}

TEST_CASE("ranks get whole subtrees by their speed") {
    using comm::TreeNode;
    // The last of three is slow: even shares would give it half of all.
    CHECK(comm::subtrees_of_ranks(8, 3) == std::vector<TreeNode>{{0, 2}, {2, 2}, {4, 4}});
    CHECK(comm::subtrees_by_speed(8, {1, 1, 0.4}) == std::vector<TreeNode>{{0, 4}, {4, 2}, {6, 2}});
    CHECK(comm::subtrees_by_speed(8, {1, 1, 3}) == std::vector<TreeNode>{{0, 2}, {2, 2}, {4, 4}});
    CHECK(comm::subtrees_by_speed(5, {1, 1, 1, 1, 1}).size() == 5);
    CHECK(comm::subtrees_by_speed(6, {2}) == std::vector<TreeNode>{{0, 6}});
    CHECK_THROWS_AS(comm::subtrees_by_speed(2, {1, 1, 1}), Error);
    CHECK_THROWS_AS(comm::subtrees_by_speed(2, {1, 0}), Error);
}

TEST_CASE("more ranks than replicas are refused with the remedy") {
    auto const code_of = [](int replicas, int ranks) {
        try {
            comm::subtrees_of_ranks(replicas, ranks);
        } catch (Error const& error) {
            return error.code();
        }
        return ExitCode::ok;
    };
    CHECK(code_of(4, 5) == ExitCode::usage);
    CHECK(code_of(4, 0) == ExitCode::usage);
    CHECK(code_of(4, 4) == ExitCode::ok);
}
