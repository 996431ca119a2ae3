#include "lockstep/base/error.hpp"
#include "program/execute.hpp"
#include "program/graph.hpp"

#include <ATen/ATen.h>

#include "catch.hpp"
#include "graph_builder.hpp"

using namespace lockstep;

TEST_CASE("a number that is given as a tensor promotes types as a number does") {
    auto const number = program::number_as_tensor(2.0).toTensor();
    CHECK(at::mul(at::ones({}), number).scalar_type() == at::kFloat);
    CHECK(at::mul(at::ones({}, at::kHalf), number).scalar_type() == at::kHalf);
}

TEST_CASE("whatever an operator throws is told as the program's fault, except for full memory") {
    using Sizes = std::vector<std::int64_t>;
    auto const huge = std::int64_t{1} << 31;
    auto const none = c10::IValue();
    struct Case {
        char const* name;
        std::vector<c10::IValue> constants;
        ExitCode code = ExitCode::usage;
        std::vector<std::size_t> slots{0};
    };
    for (auto const& [name, constants, wanted, slots] :
         {Case{"max_pool2d.default",
               {Sizes{3, 3}, Sizes{1, 1}, Sizes{0, 0}, Sizes{huge, 1}, false}},
          Case{"max_pool3d_with_indices.default",
               {Sizes{3, 3, 3}, Sizes{1, 1, 1}, Sizes{0, 0, 0}, Sizes{huge, 1, 1}, false}},
          Case{"avg_pool2d.default",
               {Sizes{2 * huge, 2 * huge}, Sizes{1, 1}, Sizes{huge, huge}, false, true, none}},
          Case{"empty.memory_format", // a kind of memory format that is none for new tensors
               {Sizes{2, 2}, none, none, none, none, 1},
               ExitCode::usage,
               {}},
          Case{"new_zeros.default",
               {Sizes{std::int64_t{1} << 50}, none, none, none, none},
               ExitCode::memory}}) {
        CAPTURE(name);
        test::GraphBuilder builder;
        builder.add(name, slots, constants);
        auto code = ExitCode::ok;
        try {
            program::execute(builder.graph(), {at::ones({1, 9, 9})}, c10::Device(c10::kCPU));
        } catch (...) {
            code = current_error().code();
        }
        CHECK(code == wanted);
    }
}
