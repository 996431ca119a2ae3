#include <torch/library.h>

#include "catch.hpp"
#include "program/operators.hpp"

using namespace lockstep;

namespace {

program::NoOperator refusal_of(std::string const& target) {
    return std::get<program::NoOperator>(program::find_operator(target));
}

} // namespace

TEST_CASE("operators outside aten are run if a library has registered them later than LibTorch") {
    program::note_operators_of_torch();
    auto const inner = refusal_of("torch.ops.inductor._reinterpret_tensor.default");
    CHECK(inner.why.find("only those of aten") != std::string::npos);
    std::string const target = "torch.ops.lockstep_unit.late.default";
    CHECK(refusal_of(target).next.find("model.operators") != std::string::npos);
    torch::Library library(torch::Library::DEF, "lockstep_unit", std::nullopt, __FILE__, __LINE__);
    library.def("late(Tensor x) -> Tensor");
    CHECK(std::holds_alternative<c10::OperatorHandle>(program::find_operator(target)));
}
