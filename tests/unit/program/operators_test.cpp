#include "base/text.hpp"
#include "program/checked.hpp"
#include "program/filled.hpp"
#include "program/operators.hpp"

#include <ATen/ATen.h>
#include <ATen/core/enum_tag.h>
#include <torch/library.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "catch.hpp"

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
         {"lu_unpack.default", "linalg_ldl_solve.default", "linalg_ldl_solve.out",
          "batch_norm_update_stats.default", "choose_qparams_optimized.default",
          "fbgemm_linear_quantize_weight.default", "mkldnn_rnn_layer.default",
          "slow_conv_transpose3d.default", "thnn_conv2d.default",
          "special_laguerre_polynomial_l.n_scalar", "embedding_dense_backward.default"}) {
        CAPTURE(name);
        CHECK(refusal_of(concat("torch.ops.aten.", name)).why.find("does not check") !=
              std::string::npos);
    }
}

TEST_CASE("no values in a tensor ask for a result that fills the memory") {
    auto const names = {"index",    "linalg_lstsq", "masked_select",      "nonzero",
                        "argwhere", "unique_dim",   "unique_consecutive", "unique_dim_consecutive"};
    for (auto const& [name, overload] : c10::Dispatcher::singleton().getAllOpNames()) {
        auto const own = name.starts_with("aten::") ? name.substr(6) : std::string();
        auto const target =
            concat("torch.ops.aten.", own, ".", overload.empty() ? "default" : overload);
        if (own.empty() || std::ranges::find(names, own) != names.end()) { // inputs bound them
            continue;
        }
        CAPTURE(target);
        auto const found = program::find_operator(target);
        auto const* const op = std::get_if<c10::OperatorHandle>(&found);
        if (op != nullptr && op->hasTag(at::Tag::dynamic_output_shape)) {
            CHECK(program::checked(*op) != nullptr);
        }
    }
    auto const is_refused = [](std::string const& name, std::vector<c10::IValue> stack) {
        CAPTURE(name);
        auto const op = program::find_operator("torch.ops.aten." + name);
        auto const bounded = program::checked(std::get<c10::OperatorHandle>(op));
        CHECK_THROWS_WITH((*bounded)(stack), Catch::Contains("its values ask for a result of"));
    };
    c10::IValue const none;
    auto const huge = at::full({1}, std::int64_t{1} << 40, at::kLong);
    is_refused("bincount.default", {huge, none, 0});
    is_refused("bincount.default", {huge - huge, none, std::int64_t{1} << 40});
    is_refused("one_hot.default", {huge, -1});
    is_refused("repeat_interleave.Tensor", {huge, none});
    is_refused("repeat_interleave.self_Tensor", {huge, huge, none, none});
    std::vector<c10::IValue> stack{at::full({3}, 1000000, at::kLong), none, 0};
    auto const count = program::find_operator("torch.ops.aten.bincount.default");
    (*program::checked(std::get<c10::OperatorHandle>(count)))(stack);
    CHECK(stack.at(0).toTensor().numel() == 1000001);
}

TEST_CASE("no operator lets a program see what was in memory before it") {
    int makers = 0;
    for (auto const& [name, overload] : c10::Dispatcher::singleton().getAllOpNames()) {
        bool const leaves =
            name.find("empty") != std::string::npos || name.find("resize") != std::string::npos;
        if (!name.starts_with("aten::") || !leaves) {
            continue;
        }
        auto const target =
            concat("torch.ops.aten.", name.substr(6), ".", overload.empty() ? "default" : overload);
        CAPTURE(target);
        auto const found = program::find_operator(target);
        if (auto const* const op = std::get_if<c10::OperatorHandle>(&found)) {
            CHECK(program::filled(*op) != nullptr);
            CHECK(overload.find("out") == std::string::npos);
            ++makers;
        }
    }
    CHECK(makers >= 6);
}

TEST_CASE("tensors that an operator only makes hold zeros, in the gaps of their strides, too") {
    auto const like = at::ones({3, 5}, at::requires_grad());
    auto const none = c10::IValue();
    struct Case {
        char const* name;
        std::vector<c10::IValue> arguments;
    };
    std::vector<std::int64_t> const shape{1000, 2};
    for (auto const& [name, arguments] : std::vector<Case>{
             {"empty.memory_format", {shape, none, none, none, none, none}},
             {"empty_permuted.default",
              {shape, std::vector<std::int64_t>{1, 0}, at::kLong, none, none, none}},
             {"empty_strided.default",
              {shape, std::vector<std::int64_t>{5, 2}, at::kDouble, none, none, none}},
             {"empty_like.default", {like, none, none, none, none, none}},
             {"new_empty.default", {like, shape, at::kBool, none, none, none}},
             {"new_empty_strided.default",
              {like, shape, std::vector<std::int64_t>{5, 2}, none, none, none, none}}}) {
        CAPTURE(name);
        auto const target = concat("torch.ops.aten.", name);
        auto const op = std::get<c10::OperatorHandle>(program::find_operator(target));
        { // what memory holds next
            auto const used = at::full({8192}, -1.5);
        }
        auto stack = arguments;
        (*program::filled(op))(stack);
        REQUIRE(stack.size() == 1);
        auto const made = stack[0].toTensor();
        auto const bytes = static_cast<std::uint8_t const*>(made.storage().data());
        CHECK(std::all_of(bytes, bytes + made.storage().nbytes(),
                          [](std::uint8_t byte) { return byte == 0; }));
        CHECK_FALSE(made.requires_grad());
    }
    CHECK(program::filled(std::get<c10::OperatorHandle>(
              program::find_operator("torch.ops.aten.zeros_like.default"))) == nullptr);
}
