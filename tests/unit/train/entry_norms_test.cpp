#include "arena/entry_norms.hpp"
#include "comm/tree_sum.hpp"

#include "catch.hpp"

using namespace lockstep;
using namespace lockstep::train;

TEST_CASE("squares of units are the same sums by halves as by the loop") {
    auto const values = torch::randn({5 * arena_unit});
    auto const by_loop = torch::zeros({5}, torch::kFloat64);
    write_unit_squares(values, by_loop);
    CHECK(torch::allclose(by_loop, squares_by_halves(values), 1e-12));
    CHECK(torch::allclose(by_loop, values.view({5, arena_unit}).to(torch::kFloat64).square().sum(1),
                          1e-12));
}

TEST_CASE("squares of a reduction_block are those that torch sums") {
    auto const values = torch::randn({reduction_block});
    CHECK(comm::block_squares(values.const_data_ptr<float>()) ==
          Approx(values.to(torch::kFloat64).square().sum().item<double>()));
}
