#include <ATen/ATen.h>

#include "catch.hpp"
#include "program/checked.hpp"
#include "program/operators.hpp"

using namespace lockstep;

namespace {

c10::OperatorHandle found(std::string const& name) {
    return std::get<c10::OperatorHandle>(program::find_operator("torch.ops.aten." + name));
}

at::Tensor whole(std::vector<std::int64_t> const& values) {
    return at::tensor(values, at::kLong);
}

/// Packs 4 sequences of 5 steps of 2 numbers; the sizes of the batches.
at::Tensor packed(at::Tensor const& lengths, bool batch_first) {
    std::vector<c10::IValue> stack{
        at::ones(batch_first ? at::IntArrayRef{4, 5, 2} : at::IntArrayRef{5, 4, 2}), lengths,
        batch_first};
    (*program::checked(found("_pack_padded_sequence.default")))(stack);
    return stack.at(1).toTensor();
}

/// Pads 9 rows of 2 numbers; the result.
at::Tensor padded(at::Tensor const& batch_sizes) {
    std::vector<c10::IValue> stack{at::ones({9, 2}), batch_sizes, true, c10::Scalar(0), -1};
    (*program::checked(found("_pad_packed_sequence.default")))(stack);
    return stack.at(0).toTensor();
}

} // namespace

TEST_CASE("sequences are packed and padded as LibTorch does it") {
    CHECK(at::equal(packed(whole({5, 2, 1, 1}), true), whole({4, 2, 1, 1, 1})));
    CHECK(at::equal(packed(whole({5, 2, 1, 1}), false), whole({4, 2, 1, 1, 1})));
    auto const strided = whole({5, 0, 2, 0, 1, 0, 1, 0}).slice(0, 0, 8, 2);
    CHECK(at::equal(packed(strided, true), whole({4, 2, 1, 1, 1})));
    CHECK(padded(whole({4, 2, 1, 1, 1})).sizes() == at::IntArrayRef{4, 5, 2});
}

TEST_CASE("lengths that no sequence has are refused before LibTorch counts up to them") {
    auto const huge = std::int64_t{1} << 40;
    for (auto const& lengths :
         {whole({huge, 2, 1, 1}), whole({6, 2, 1, 1}), whole({2, 5, 1, 1}), whole({5, 2, 1, 0}),
          whole({5, 2, 1, -huge}), whole({}), at::ones({4}), at::ones({2, 2}, at::kLong)}) {
        CHECK_THROWS_AS(packed(lengths, true), c10::Error);
        CHECK_THROWS_AS(packed(lengths, false), c10::Error);
    }
}

TEST_CASE("batch sizes that do not fit the rows are refused") {
    auto const huge = std::int64_t{1} << 62;
    for (auto const& sizes :
         {whole({4, 2, 1, 1}), whole({4, 2, 1, 1, 1, 1}), whole({2, 4, 1, 1, 1}),
          whole({huge, huge, huge}), whole({10, -1}), whole({9, 0}), whole({})}) {
        CHECK_THROWS_AS(padded(sizes), c10::Error);
    }
}

TEST_CASE("a recurrent layer's batch sizes are checked, too") {
    auto const gru = [](at::Tensor const& batch_sizes) {
        std::vector<at::Tensor> const weights{at::ones({9, 2}), at::ones({9, 3}), at::ones({9}),
                                              at::ones({9})};
        std::vector<c10::IValue> stack{at::ones({9, 2}),
                                       batch_sizes,
                                       at::zeros({1, 4, 3}),
                                       weights,
                                       true,
                                       1,
                                       0.0,
                                       false,
                                       false};
        (*program::checked(found("gru.data")))(stack);
        return stack.at(0).toTensor();
    };
    CHECK(gru(whole({4, 2, 1, 1, 1})).sizes() == at::IntArrayRef{9, 3});
    CHECK(at::equal(gru(whole({4, 0, 2, 0, 1, 0, 1, 0, 1, 0}).slice(0, 0, 10, 2)),
                    gru(whole({4, 2, 1, 1, 1}))));
    for (auto const& sizes : {whole({}), whole({1}).expand(1000), whole({4, 2, 1, 1})}) {
        CHECK_THROWS_AS(gru(sizes), c10::Error);
    }
    CHECK(program::checked(found("gru.input")) == nullptr);
    CHECK(program::checked(found("lstm.data")) != nullptr);
}

TEST_CASE("tensors of a batch norm have a number for each channel of its input") {
    auto const none = c10::IValue();
    auto const normed = [&](at::Tensor const& input, c10::IValue const& weight,
                            c10::IValue const& bias, at::Tensor const& mean,
                            at::Tensor const& variance) {
        std::vector<c10::IValue> stack{input, weight, bias, mean, variance, true, 0.1, 1e-5};
        (*program::checked(found("_native_batch_norm_legit.default")))(stack);
        return stack.at(0).toTensor();
    };
    auto const input = at::rand({4, 3, 2});
    auto const three = [] { return at::ones({3}); };
    CHECK(normed(input, three(), none, three(), three()).sizes() == input.sizes());
    for (auto const& odd : {at::ones({2}), at::ones({4}), at::ones({}), at::ones({3, 1})}) {
        CHECK_THROWS_AS(normed(input, odd, none, three(), three()), c10::Error);
        CHECK_THROWS_AS(normed(input, none, odd, three(), three()), c10::Error);
        CHECK_THROWS_AS(normed(input, none, none, odd, three()), c10::Error);
        CHECK_THROWS_AS(normed(input, none, none, three(), odd), c10::Error);
    }
    CHECK_THROWS_AS(normed(at::rand({3}), none, none, three(), three()), c10::Error);
    std::vector<c10::IValue> stack{input, at::ones({5}), none, true, 0.1, 1e-5};
    CHECK_THROWS_AS((*program::checked(found("_native_batch_norm_legit.no_stats")))(stack),
                    c10::Error);
}

TEST_CASE("the lengths of a weight norm are those of its slices") {
    auto const normed = [](at::Tensor const& v, at::Tensor const& g, int dim) {
        std::vector<c10::IValue> stack{v, g, dim};
        (*program::checked(found("_weight_norm.default")))(stack);
        return stack.at(0).toTensor();
    };
    CHECK(normed(at::rand({4, 3}), at::rand({4, 1}), 0).sizes() == at::IntArrayRef{4, 3});
    CHECK(normed(at::rand({4, 3}), at::rand({1, 3}), 1).sizes() == at::IntArrayRef{4, 3});
    CHECK(normed(at::rand({4, 3}), at::rand({}), -1).sizes() == at::IntArrayRef{4, 3}); // of all
    CHECK_THROWS_AS(normed(at::rand({4, 3}), at::rand({1, 1}), 0), c10::Error);
    CHECK_THROWS_AS(normed(at::rand({4, 3}), at::rand({4}), 0), c10::Error);
    CHECK_THROWS_AS(normed(at::rand({4, 3}), at::rand({4, 1}), 1), c10::Error);
    CHECK_THROWS_AS(normed(at::rand({5, 0}), at::rand({5, 1}), 0), c10::Error);
}

TEST_CASE("steps of 0 and countless sections are refused") {
    std::vector<c10::IValue> range{2, 9, 0.5, at::empty({0}, at::kLong)};
    CHECK_THROWS_AS((*program::checked(found("range.out")))(range), c10::Error);
    for (auto const* const name : {"tensor_split.sections", "chunk.default", "unsafe_chunk.default",
                                   "hsplit.int", "vsplit.int", "dsplit.int"}) {
        INFO(name);
        std::vector<c10::IValue> sections{at::ones({4, 0, 2}), 1 << 30, 0};
        CHECK_THROWS_AS((*program::checked(found(name)))(sections), c10::Error);
    }
    std::vector<c10::IValue> unbound{at::empty({2, 0, 1 << 30}), -1};
    CHECK_THROWS_AS((*program::checked(found("unbind.int")))(unbound), c10::Error);
    std::vector<c10::IValue> split{at::empty({2, 0, 1 << 30}), 3, 2};
    CHECK_THROWS_AS((*program::checked(found("split.Tensor")))(split), c10::Error);
}

TEST_CASE("bags take lists, and give what they gave") {
    auto const bags = [](at::Tensor const& indices, at::Tensor const& offsets) {
        std::vector<c10::IValue> stack{
            at::arange(6.0F).view({3, 2}), indices, offsets, false, 0, false, at::Tensor(), false};
        (*program::checked(found("embedding_bag.default")))(stack);
        return stack[0].toTensor();
    };
    auto const offsets = at::tensor({0, 2}, at::kLong);
    CHECK(at::equal(bags(at::tensor({0, 2, 1}, at::kLong), offsets),
                    at::tensor({4.0F, 6.0F, 2.0F, 3.0F}).view({2, 2})));
    CHECK_THROWS_AS(bags(at::zeros({17, 3}, at::kShort), offsets), c10::Error);
    CHECK_THROWS_AS(bags(at::zeros({3}, at::kLong), at::zeros({2, 3}, at::kLong)), c10::Error);
}

TEST_CASE("other operators run as they are") {
    CHECK(program::checked(found("relu.default")) == nullptr);
}
