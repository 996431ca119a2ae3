#include "arena/buffers.hpp"

#include "catch.hpp"

using namespace lockstep;

namespace {

/// With buffers of both types in turns, some of which are parts of larger tensors.
class Holder : public nn::Model {
  public:
    Holder() {
        register_buffer("column", torch::arange(6, torch::kFloat32).view({3, 2}).select(1, 1));
        register_buffer("count", torch::tensor(7, torch::kInt64));
        register_buffer("every other",
                        torch::arange(8, torch::kInt64).view({2, 4}).slice(1, 0, 4, 2));
        register_buffer("whole", torch::full({2, 2}, 0.5F));
    }
    torch::Tensor forward(nn::Fields const& inputs) override { return inputs.only(); }
};

} // namespace

TEST_CASE("buffers are collected and restored, whatever their strides") {
    Holder model;
    train::Buffers buffers(model);
    CHECK(torch::equal(buffers.integers, torch::tensor({7, 0, 2, 4, 6}, torch::kInt64)));
    CHECK(torch::equal(buffers.floats, torch::tensor({1.0F, 3.0F, 5.0F, 0.5F, 0.5F, 0.5F, 0.5F})));
    for (auto const& buffer : model.buffers()) {
        torch::Tensor(buffer).zero_();
    }
    buffers.restore_into(model);
    auto const named = model.named_buffers();
    CHECK(torch::equal(named["column"], torch::tensor({1.0F, 3.0F, 5.0F})));
    CHECK(named["count"].item<std::int64_t>() == 7);
    CHECK(torch::equal(named["every other"], torch::tensor({{0, 2}, {4, 6}}, torch::kInt64)));
    torch::Tensor(named["whole"]).fill_(2);
    buffers.collect_from(model);
    CHECK(buffers.floats[6].item<float>() == 2);
}

TEST_CASE("a model without buffers has none") {
    class Empty : public nn::Model {
        torch::Tensor forward(nn::Fields const& inputs) override { return inputs.only(); }
    };
    Empty model;
    train::Buffers const buffers(model);
    CHECK(buffers.bytes().empty());
    buffers.restore_into(model);
}
