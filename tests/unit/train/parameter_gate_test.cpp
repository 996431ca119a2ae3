// Forwards that begin before their parameters have arrived: every built-in model waits for each of
// them before it reads it.

#include "arena/arena.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/nn/registry.hpp"
#include "program/batch_norm.hpp"
#include "program/max_pool.hpp"
#include "program/transposed.hpp"
#include "program/widened.hpp"
#include "step/parameter_gate.hpp"

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "catch.hpp"

using namespace lockstep;

namespace {

/// An exchange of one rank whose parameters arrive only when they are waited for: before, what is
/// read of them is not a number.
class LateExchange : public comm::Exchange {
  public:
    explicit LateExchange(std::int64_t size)
        : Exchange(comm::Partition(size, 1, comm::reduction_block, comm::reduction_block)),
          parameters_(static_cast<std::size_t>(size)), gradients_(static_cast<std::size_t>(size)) {}

    std::string name() const override { return "late"; }
    int rank() const noexcept override { return 0; }
    bool sums_everywhere() const noexcept override { return false; }
    float* gradients() noexcept override { return gradients_.data(); }
    float* parameters() noexcept override { return parameters_.data(); }
    bool is_whole() const noexcept override { return sent_.empty(); }
    int arrived() override { return sent_.empty() ? partition_.buckets() : arrived_; }

    int waits = 0;
    bool fails = false;

  private:
    void begin_sum(double) override {}
    void bucket_ready(int) override {}
    void finish_sum(std::span<double>, std::span<std::byte>) override {}
    std::span<double const> squares() const override { return {}; }
    void send_parameters() override {
        sent_ = parameters_;
        arrived_ = 0;
        std::ranges::fill(parameters_, std::numeric_limits<float>::quiet_NaN());
    }
    void wait_arrived(int count) override {
        ++waits;
        if (fails) {
            throw Error(ExitCode::rank_lost, {"a rank is lost", "it was asked to", "Nothing"});
        }
        for (; arrived_ < count; ++arrived_) {
            auto const range = partition_.bucket(partition_.buckets() - 1 - arrived_);
            std::copy(sent_.begin() + range.first, sent_.begin() + range.last,
                      parameters_.begin() + range.first);
        }
    }
    void finish_publishing() override {
        wait_arrived(partition_.buckets());
        sent_.clear();
    }

    std::vector<float> parameters_;
    std::vector<float> gradients_;
    std::vector<float> sent_; ///< empty: nothing is on its way
    int arrived_ = 0;
};

/// A model whose parameters arrive late.
struct Late {
    explicit Late(std::shared_ptr<nn::Model> chosen)
        : model(std::move(chosen)), layout(train::Layout::of(*model)), exchange(layout.size),
          arena(layout, train::borrowed(exchange.parameters(), layout.size, torch::kCPU)),
          gate(exchange, arena, alone) {
        arena.fill_from(*model, {{0, layout.size}});
        arena.adopt(*model);
    }

    comm::Communicator alone = comm::Communicator::self();
    std::shared_ptr<nn::Model> model;
    train::Layout layout;
    LateExchange exchange;
    train::Arena arena;
    train::ParameterGate gate;
};

struct LateCase {
    config::Model chosen;
    nn::Interface interface;
    torch::Tensor inputs;
    torch::Tensor lengths{};
};

std::vector<LateCase> late_cases() {
    auto const values = [](std::vector<std::int64_t> const& shape) {
        std::int64_t count = 1;
        for (auto const extent : shape) {
            count *= extent;
        }
        return torch::sin(0.37 * torch::arange(count).to(torch::kFloat32)).reshape(shape);
    };
    nn::Interface tokens;
    tokens.sample_shape = {12};
    tokens.outputs = 512;
    tokens.inputs = {
        {.name = "tokens", .type = h5::Type::i64, .shape = {12}, .whole = true, .vocabulary = 512}};
    auto const text = (torch::arange(24, torch::kInt64) * 37 % 512).reshape({2, 12});
    auto const transformer = [](std::string const& tied) {
        return config::Model{
            "transformer",
            {{"layers", "2"}, {"width", "64"}, {"heads", "4"}, {"tied", tied}, {"dropout", "0.1"}}};
    };
    auto const recording = torch::tensor({9, 14}, torch::kInt64);
    return {
        {{"mlp", {{"hidden", "120, 90"}, {"dropout", "0.2"}}}, {{8, 16}, 5}, values({3, 8, 16})},
        {{"cnn", {{"channels", "16, 32"}, {"hidden", "64"}}}, {{8, 8}, 5}, values({3, 8, 8})},
        {{"cnn1d", {}}, {{3, 64}, 5}, values({3, 3, 64})},
        {{"cnn3d", {}}, {{1, 5, 16, 16}, 5}, values({2, 1, 5, 16, 16})},
        {{"resnet", {}}, {{3, 32, 32}, 5}, values({2, 3, 32, 32})},
        {{"unet", {{"channels", "8, 16, 32"}}}, {{2, 8, 12}, 5}, values({2, 2, 8, 12})},
        {{"unet3d", {{"channels", "8, 16"}}}, {{2, 4, 8, 12}, 5}, values({2, 2, 4, 8, 12})},
        {{"vit", {{"patch", "4"}, {"layers", "2"}, {"width", "48"}, {"heads", "4"}}},
         {{3, 16, 16}, 5},
         values({2, 3, 16, 16})},
        {{"lmu-asr", {{"width", "48"}, {"hidden", "96"}}}, {{5}, 7}, values({23, 5}), recording},
        {transformer("true"), tokens, text},
        {transformer("false"), tokens, text},
    };
}

nn::Fields fields_of(LateCase const& each) {
    return nn::Fields(std::vector<nn::Field>{{each.inputs, each.lengths}});
}

} // namespace

TEST_CASE("no layer of a built-in model reads a parameter that has not arrived") {
    for (auto each : late_cases()) {
        for (bool const recompute : {false, true}) {
            each.interface.recompute = recompute;
            CAPTURE(each.chosen.name, recompute);
            auto const make = [&] { return nn::make_model(each.chosen, each.interface, 3); };
            auto const plain = make();
            Late late(make());
            REQUIRE(late.exchange.partition().buckets() > 3);
            plain->set_random_key(5);
            auto const expected = plain->forward(fields_of(each));
            expected.square().sum().backward();
            for (int pass = 0; pass < 2; ++pass) { // the second one has nothing to wait for
                late.exchange.waits = 0;
                if (pass == 0) {
                    late.exchange.begin_publish();
                    REQUIRE(
                        std::isnan(late.model->parameters().front().flatten()[0].item<float>()));
                }
                late.model->zero_grad();
                late.model->set_random_key(5);
                auto const found =
                    late.gate.open([&] { return late.model->forward(fields_of(each)); });
                CHECK(late.exchange.is_whole());
                CHECK((pass == 0) == (late.exchange.waits > 1)); // layer by layer
                CHECK(torch::equal(found, expected));
                found.square().sum().backward();
                auto const gradients = plain->named_parameters();
                for (auto const& item : late.model->named_parameters()) {
                    CAPTURE(item.key());
                    CHECK(torch::equal(item.value().grad(), gradients[item.key()].grad()));
                }
            }
        }
    }
}

TEST_CASE("own kernels wait for the parameters that they read") {
    Late late(nn::make_model({"mlp", {{"hidden", "128"}}}, {{128}, 128}, 3));
    torch::NoGradGuard const no_grad;
    auto const matrix = late.model->parameters().front(); // and views of it, made before
    REQUIRE(matrix.sizes() == std::vector<std::int64_t>{128, 128});
    auto const plane = matrix.view({1, 1, 128, 128});
    auto const planes = matrix.view({1, 128, 128});
    auto const terms = matrix[3];
    auto const values =
        torch::sin(torch::arange(4 * 128 * 9).to(torch::kFloat32)).view({4, 128, 9});
    auto const zeros = torch::zeros(128);
    std::vector<std::function<torch::Tensor()>> const kernels{
        [&] {
            return program::max_pool(plane, {.kernel = {2, 2}});
        },
        [&] {
            return program::max_pool_with_indices(plane, {.kernel = {2, 2}}).outputs;
        },
        [&] {
            return program::widened(plane, {256, 256});
        },
        [&] { return program::transposed(planes); },
        [&] {
            return program::batch_norm(values, {.weight = terms,
                                                .bias = terms,
                                                .running_mean = zeros.clone(),
                                                .running_var = zeros.clone(),
                                                .momentum = 0.1,
                                                .epsilon = 1e-5});
        }};
    for (std::size_t i = 0; i < kernels.size(); ++i) {
        CAPTURE(i);
        auto const expected = kernels[i]();
        late.exchange.begin_publish();
        CHECK(torch::equal(late.gate.open(kernels[i]), expected));
    }
}

TEST_CASE("layers that run in another order than parameters arrive wait, and get the right ones") {
    auto const rows = torch::sin(torch::arange(6 * 128).to(torch::kFloat32)).reshape({6, 128});
    Late late(nn::make_model({"mlp", {{"hidden", "128, 128"}}}, {{128}, 128}, 3));
    std::vector<torch::Tensor> matrices;
    for (auto const& parameter : late.model->parameters()) {
        if (parameter.dim() == 2) {
            matrices.push_back(parameter);
        }
    }
    REQUIRE(matrices.size() == 3);
    auto const run = [&] {
        auto found = rows;
        for (int const at : {2, 0, 1, 2}) { // and one of them twice, within a list and as a view
            auto const& matrix = matrices[static_cast<std::size_t>(at)];
            found = at == 1 ? torch::chain_matmul({found, matrix.t()})
                            : torch::cat({torch::linear(found, matrix), matrix.narrow(0, 3, 2)})
                                  .narrow(0, 0, 6);
        }
        return found;
    };
    auto const expected = run();
    late.exchange.begin_publish();
    CHECK(torch::equal(late.gate.open(run), expected));
    CHECK(late.exchange.waits > 0);
}

TEST_CASE("a rank that is lost while others wait in forward is an error of that forward") {
    Late late(nn::make_model({"mlp", {{"hidden", "128"}}}, {{64}, 5}, 3));
    late.exchange.begin_publish();
    late.exchange.fails = true;
    CHECK_THROWS_AS(late.gate.open([&] {
        return late.model->forward(torch::ones({2, 64}));
    }),
                    Error);
    CHECK(late.exchange.waits == 1); // those after it need not try again
    late.exchange.fails = false;
    auto const found = late.gate.open([&] { return late.model->forward(torch::ones({2, 64})); });
    CHECK(torch::isfinite(found).all().item<bool>());
}
