#include "base/text.hpp"

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

TEST_CASE("operators that trust the sizes or indices that they are given are refused") {
    for (auto const* const name :
         {"lu_unpack.default", "batch_norm_update_stats.default",
          "choose_qparams_optimized.default", "fbgemm_linear_quantize_weight.default",
          "mkldnn_rnn_layer.default", "slow_conv_transpose3d.default", "thnn_conv2d.default",
          "special_laguerre_polynomial_l.n_scalar", "embedding_dense_backward.default"}) {
        CAPTURE(name);
        CHECK(refusal_of(concat("torch.ops.aten.", name)).why.find("does not check") !=
              std::string::npos);
    }
}
