#include "program/blocks.hpp"

#include <algorithm>
#include <cmath>

#include "catch.hpp"
#include "graph_builder.hpp"

using namespace lockstep;
using program::Block;

namespace {

std::vector<std::size_t> firsts(std::vector<Block> const& blocks) {
    std::vector<std::size_t> result;
    for (auto const& block : blocks) {
        result.push_back(block.first);
    }
    return result;
}

} // namespace

TEST_CASE("a chain is cut into about as many blocks as the root of its length, without a gap") {
    for (int const nodes : {1, 2, 9, 100}) {
        test::GraphBuilder made;
        made.chain(0, nodes);
        auto const blocks = program::blocks_of(made.graph());
        CHECK(blocks.size() ==
              static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(nodes)))));
        std::size_t next = 0;
        for (auto const& block : blocks) {
            CHECK(block.first == next);
            CHECK(block.last > block.first);
            next = block.last;
        }
        CHECK(next == static_cast<std::size_t>(nodes));
    }
}

TEST_CASE("a block needs what was made before it, each once, and not what it makes") {
    test::GraphBuilder made;
    auto const early = made.chain(0, 8);
    auto const sum = made.add("add.Tensor", {made.chain(early, 7), early}, {1});
    made.add("mul.Tensor", {sum, 0});
    auto const blocks = program::blocks_of(made.graph());
    REQUIRE(blocks.size() == 4);
    CHECK(blocks.front().needed == std::vector<std::size_t>{0});
    std::vector<std::size_t> needed = blocks.back().needed;
    std::ranges::sort(needed);
    CHECK(needed.size() == 3); // the chain's end, `early`, and the input
    CHECK(needed.front() == 0);
    CHECK(std::ranges::count(needed, early) == 1);
    CHECK(needed.back() == blocks.back().first);
}

TEST_CASE("a cut lies where the fewest tensors are alive") {
    test::GraphBuilder made; // two branches, whose sum is made at node 6; the second begins at 3
    auto const left = made.chain(0, 3);
    auto const right = made.chain(made.add("relu.default", {0}), 2);
    auto const sum = made.add("add.Tensor", {left, right}, {1});
    made.chain(sum, 2);
    CHECK(firsts(program::blocks_of(made.graph())) == std::vector<std::size_t>{0, 3, 7});
}

TEST_CASE("of equal places a cut takes that between modules") {
    test::GraphBuilder made;
    made.module = "layers.0";
    auto const first = made.chain(0, 5);
    made.module = "layers.1";
    made.chain(first, 4);
    CHECK(firsts(program::blocks_of(made.graph())) == std::vector<std::size_t>{0, 3, 5});
}

TEST_CASE("fewer tensors count for more than modules") {
    test::GraphBuilder made;
    made.module = "layers.0";
    auto const two = made.chain(0, 2);
    auto const three = made.chain(two, 1);
    made.module = "layers.1"; // between the modules two tensors are alive
    made.chain(made.add("add.Tensor", {three, two}, {1}), 5);
    CHECK(firsts(program::blocks_of(made.graph()))[1] == 2);
}

TEST_CASE("what is changed in place is not touched on both sides of a cut, nor are its views") {
    for (bool const view : {false, true}) {
        test::GraphBuilder made;
        auto const base = made.add("sin.default", {0});
        made.chain(0, 5);
        made.add("relu_.default", {view ? made.add("alias.default", {base}) : base});
        made.chain(0, 9);
        auto const blocks = program::blocks_of(made.graph());
        for (auto const& block : blocks) {
            CHECK((block.first == 0 || block.first > (view ? 7U : 6U)));
        }
        CHECK(blocks.size() > 1);
    }
}

TEST_CASE("a buffer that a block changes is said to be changed, also through batch norm") {
    test::GraphBuilder made;
    made.add("add_.Tensor", {0, 0}, {1});
    CHECK(program::blocks_of(made.graph()).front().changed == std::vector<std::size_t>{0});

    test::GraphBuilder plain;
    plain.chain(0, 1);
    CHECK(program::blocks_of(plain.graph()).front().changed.empty());

    for (bool const mean : {true, false}) { // running statistics
        test::GraphBuilder norm;
        auto const made_here = norm.add("sin.default", {0});
        norm.add("batch_norm.default",
                 {made_here, made_here, made_here, mean ? 0 : made_here, mean ? made_here : 0},
                 {true, 0.1, 1e-5, false});
        CHECK(program::blocks_of(norm.graph()).front().changed == std::vector<std::size_t>{0});
    }
}

TEST_CASE("a block says whether it draws random numbers") {
    test::GraphBuilder made;
    auto const before = made.chain(0, 6);
    made.chain(made.add("dropout.default", {before}, {0.5, true}), 2);
    auto const blocks = program::blocks_of(made.graph());
    for (auto const& block : blocks) {
        CHECK(block.draws == (block.first <= 6 && 6 < block.last));
    }
    CHECK(blocks.size() == 3);
}
