#include "program/checked.hpp"
#include "program/operators.hpp"

#include <ATen/ATen.h>

#include "catch.hpp"

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

TEST_CASE("bags take indices and offsets that fit, and give what they gave") {
    auto const none = at::Tensor();
    auto const bags = [](at::Tensor const& indices, at::Tensor const& offsets,
                         at::Tensor const& weights = {}, bool ends_with_last = false,
                         int mode = 0) {
        std::vector<c10::IValue> stack{at::arange(6.0F).view({3, 2}),
                                       indices,
                                       offsets,
                                       false,
                                       mode,
                                       false,
                                       weights,
                                       ends_with_last};
        (*program::checked(found("embedding_bag.default")))(stack);
        return stack[0].toTensor();
    };
    auto const indices = whole({0, 2, 1});
    auto const expected = at::tensor({4.0F, 6.0F, 2.0F, 3.0F}).view({2, 2});
    CHECK(at::equal(bags(indices, whole({0, 2})), expected));
    CHECK(at::equal(bags(indices.to(at::kInt), whole({0, 2}).to(at::kInt)), expected));
    CHECK(at::equal(bags(whole({0, 7, 2, 7, 1, 7}).slice(0, 0, 6, 2), whole({0, 2})), expected));
    CHECK(at::equal(bags(indices, whole({0, 2, 3}), none, true), expected));
    CHECK(at::equal(bags(indices, whole({0, 2}), at::ones({3})), expected));
    CHECK(bags(whole({}), whole({})).numel() == 0);
    for (int mode = 0; mode < 3; ++mode) { // of an empty bag
        CHECK(at::equal(bags(indices, whole({0, 0, 3, 3}), none, false, mode)[3], at::zeros({2})));
    }
    CHECK_THROWS_AS(bags(at::zeros({17, 3}, at::kShort), whole({0, 2})), c10::Error);
    CHECK_THROWS_AS(bags(indices, at::zeros({2, 3}, at::kLong)), c10::Error);
    auto const huge = std::int64_t{1} << 40;
    for (auto const& offsets : {whole({1, 2}), whole({0, -1, 2}), whole({0, 2, 1}), whole({0, 4}),
                                whole({0, huge}), whole({-huge}), whole({})}) {
        CHECK_THROWS_AS(bags(indices, offsets), c10::Error);
    }
    CHECK_THROWS_AS(bags(indices, whole({0, 2, 1}).to(at::kInt)), c10::Error);
    CHECK_THROWS_AS(bags(indices, whole({0, 2}), none, true), c10::Error);
    CHECK_THROWS_AS(bags(whole({}), whole({}), none, true), c10::Error);
    for (auto const& others : {whole({0, 3, 1}), whole({0, -1, 1}), whole({huge, 0, 0})}) {
        CHECK_THROWS_AS(bags(others, whole({0, 2})), c10::Error);
    }
    CHECK_THROWS_AS(bags(indices, whole({0, 2}), at::ones({2})), c10::Error);
    CHECK(program::checked(found("embedding_bag.padding_idx")) != nullptr);
}

TEST_CASE("queries, keys, values and masks of an attention fit together") {
    struct Case {
        std::vector<std::int64_t> query;
        std::vector<std::int64_t> keys;
        std::vector<std::int64_t> values;
        std::vector<std::int64_t> mask{};
        bool fits = false;
    };
    for (auto const& [query, keys, values, mask, fits] :
         {Case{{2, 4, 5, 8}, {2, 4, 7, 8}, {2, 4, 7, 8}, {}, true},
          Case{{2, 4, 5, 8}, {2, 2, 7, 8}, {2, 2, 7, 8}, {}, true}, // groups of queries
          Case{{2, 4, 5, 8}, {2, 4, 7, 8}, {2, 4, 7, 8}, {5, 7}, true},
          Case{{2, 4, 5, 8}, {2, 4, 7, 8}, {2, 4, 7, 8}, {1, 7}, true},
          Case{{2, 4, 5, 8}, {2, 4, 7, 8}, {2, 4, 7, 8}, {2, 1, 5, 7}, true},
          Case{{3, 4, 5, 8}, {1, 4, 7, 8}, {1, 4, 7, 8}}, // samples
          Case{{2, 4, 5, 8}, {2, 4, 7, 8}, {1, 4, 7, 8}},
          Case{{2, 4, 5, 8}, {2, 3, 7, 8}, {2, 3, 7, 8}}, // heads
          Case{{2, 4, 5, 8}, {2, 4, 7, 8}, {2, 2, 7, 8}},
          Case{{2, 4, 5, 8}, {2, 4, 7, 8}, {2, 4, 6, 8}}, // pairs of keys and values
          Case{{2, 4, 5, 8}, {2, 4, 7, 9}, {2, 4, 7, 8}}, // sizes
          Case{{2, 4, 5, 8}, {2, 4, 0, 8}, {2, 4, 0, 8}}, Case{{4, 5, 8}, {4, 7, 8}, {4, 7, 8}},
          Case{{2, 4, 5, 8}, {2, 4, 7, 8}, {2, 4, 7, 8}, {3, 3}},
          Case{{2, 4, 5, 8}, {2, 4, 7, 8}, {2, 4, 7, 8}, {3, 1, 5, 7}},
          Case{{2, 4, 5, 8}, {2, 4, 7, 8}, {2, 4, 7, 8}, {4, 5, 7}}}) {
        CAPTURE(query, keys, values, mask);
        c10::IValue const masked = mask.empty() ? c10::IValue() : c10::IValue(at::zeros(mask));
        std::vector<c10::IValue> stack{at::ones(query), at::ones(keys), at::ones(values), 0.0,
                                       false,           masked,         c10::IValue()};
        auto const inner =
            program::checked(found("_scaled_dot_product_flash_attention_for_cpu.default"));
        if (!fits) {
            CHECK_THROWS_AS((*inner)(stack), c10::Error);
            continue;
        }
        (*inner)(stack);
        CHECK(at::allclose(stack.at(0).toTensor(), at::ones(query)));
    }
    auto const outer = program::checked(found("scaled_dot_product_attention.default"));
    for (std::int64_t const count : {3, 4, 5}) {
        std::vector<c10::IValue> stack{at::ones({1, 1, 4, 8}),
                                       at::ones({1, 1, 4, 8}),
                                       at::ones({1, 1, count, 8}),
                                       c10::IValue(),
                                       0.0,
                                       false,
                                       c10::IValue(),
                                       false};
        if (count == 4) {
            (*outer)(stack);
            CHECK(stack.at(0).toTensor().sizes() == at::IntArrayRef{1, 1, 4, 8});
        } else {
            CHECK_THROWS_AS((*outer)(stack), c10::Error);
        }
    }
}

TEST_CASE("other operators run as they are") {
    CHECK(program::checked(found("relu.default")) == nullptr);
}
