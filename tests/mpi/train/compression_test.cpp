// Gradients that travel in fewer bytes.

#include "comm/collectives.hpp"
#include "device/configure_torch.hpp"
#include "exchange/choose_exchange.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "catch.hpp"
#include "training.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

config::Model const small_cnn{"cnn", {{"channels", "3, 5"}, {"hidden", "16"}, {"dropout", "0.2"}}};

std::unique_ptr<comm::Exchange> power_sgd(std::vector<train::Matrix> const& matrices,
                                          std::int64_t size) {
    config::Communication options;
    options.compression = "powersgd";
    options.powersgd_rank = 2;
    options.timeout_seconds = 20;
    train::ExchangeNeeds needs;
    needs.nodes = comm::subtrees_of_ranks(world().size(), world().size());
    needs.size = size;
    needs.step_sums = 1;
    needs.sums_everywhere = true;
    needs.matrices = matrices;
    return train::choose_exchange(world(), options, torch::kCPU, needs);
}

struct Exchanged {
    torch::Tensor sum;
    double squares = 0; ///< of all its elements
};

Exchanged exchanged(comm::Exchange& exchange, torch::Tensor const& gradients, double unit = 1) {
    auto const ours = torch::from_blob(exchange.gradients(), gradients.sizes());
    auto under_way = exchange.begin(unit);
    ours.copy_(gradients);
    for (int bucket = 0; bucket < exchange.partition().buckets(); ++bucket) {
        under_way.ready(bucket);
    }
    double carried = 1;
    auto const squares = std::move(under_way).finish({&carried, 1}, {});
    CHECK(carried == world().size());
    Exchanged exchanged{ours.clone(), std::accumulate(squares.begin(), squares.end(), 0.0)};
    exchange.publish();
    return exchanged;
}

torch::Tensor sum_of_all(torch::Tensor const& values) {
    auto const sum = values.clone();
    comm::all_reduce(
        world(), std::span(sum.mutable_data_ptr<float>(), static_cast<std::size_t>(sum.numel())),
        comm::Reduce::sum);
    return sum;
}

} // namespace

TEST_CASE("rounded gradients give the same bits on any ranks, hosts and threads") {
    train::configure_torch(config::Run{});
    SharedSet const set(world());
    auto const alone = comm::Communicator::self();
    for (std::string const type : {"fp16", "bf16"}) {
        CAPTURE(type);
        auto deck = deck_with(small_cnn);
        deck.communication.compression = type;
        Training reference(alone, set.get(), deck);
        Training plain(alone, set.get(), deck_with(small_cnn));
        auto concurrent = deck;
        concurrent.run.mode = "dp";
        auto everywhere = deck;
        everywhere.optimizer.update = "replicated";
        std::vector<std::unique_ptr<Training>> others;
        others.push_back(std::make_unique<Training>(alone, set.get(), concurrent));
        others.push_back(std::make_unique<Training>(world(), set.get(), deck));
        others.push_back(std::make_unique<Training>(world(), set.get(), deck, 1));
        others.push_back(std::make_unique<Training>(world(), set.get(), everywhere, 2));
        for (int step = 0; step < 6; ++step) {
            CAPTURE(step);
            auto const expected = reference.step();
            auto const unrounded = plain.step();
            CHECK(expected.grad_norm != unrounded.grad_norm);
            if (step == 0) { // later the weights differ too
                CHECK(expected.grad_norm == Approx(unrounded.grad_norm).epsilon(0.01));
            }
            for (auto const& other : others) {
                CHECK(other->step().grad_norm == expected.grad_norm);
                CHECK(same_bits(other->model(), reference.model()));
            }
        }
    }
}

TEST_CASE("powersgd gives back a matrix of low rank, and everything that is no matrix") {
    if (world().size() == 1) {
        return; // nothing travels
    }
    constexpr std::int64_t rows = 400;
    constexpr std::int64_t columns = 300;
    constexpr std::int64_t size = 31 * comm::reduction_block;
    auto const exchange = power_sgd({{64, rows, columns}}, size);
    CHECK(exchange->name().find("PowerSGD") == 0);
    torch::manual_seed(7);
    auto const left = torch::randn({rows, 2}); // the same on all ranks
    torch::manual_seed(8 + world().rank());
    auto const gradients = torch::randn({size});
    gradients.narrow(0, 64, rows * columns).copy_(left.mm(torch::randn({2, columns})).view(-1));
    auto const [sum, squares] = exchanged(*exchange, gradients);
    auto const expected = sum_of_all(gradients);
    CHECK(torch::allclose(sum, expected, 1e-4, 1e-4));
    CHECK(torch::allclose(sum.narrow(0, 0, 64), expected.narrow(0, 0, 64), 1e-6, 1e-6));
    CHECK(squares == Approx(sum.to(torch::kFloat64).square().sum().item<double>()));
    auto const plain = power_sgd({}, size); // no matrices: all travels as it is
    exchanged(*plain, gradients);
    CHECK(exchange->cost().bytes < plain->cost().bytes);
}

TEST_CASE("what powersgd loses in one step comes in a later one") {
    if (world().size() == 1) {
        return;
    }
    constexpr std::int64_t rows = 64;
    constexpr std::int64_t columns = 64;
    auto const exchange = power_sgd({{0, rows, columns}}, comm::reduction_block);
    auto given = torch::zeros({comm::reduction_block});
    auto got = torch::zeros({comm::reduction_block});
    double last_share = 1;
    for (int step = 0; step < 40; ++step) {
        torch::manual_seed(world().rank());
        auto const gradients = torch::randn({comm::reduction_block}); // the same in every step
        double const unit = step % 2 == 0 ? 8 : 2;                    // samples of the step
        given += sum_of_all(gradients);
        got += exchanged(*exchange, gradients * unit, unit).sum / unit;
        last_share = ((given - got).norm() / given.norm()).item<double>();
    }
    // The difference is what is still owed.
    auto const carried = exchange->carried();
    CHECK(carried[0].name == "compression/error");
    auto const owed = sum_of_all(torch::from_blob(carried[0].values, {comm::reduction_block}));
    CHECK(torch::allclose(given - got, owed, 1e-3, 1e-2));
    CHECK(last_share < 0.5);
    CHECK(owed.norm().item<double>() > 1);
}

TEST_CASE("compression that does not go with the rest of the deck is refused") {
    SharedSet const set(world());
    auto const code_of = [&](config::Deck const& deck) {
        try {
            Training const training(world(), set.get(), deck);
        } catch (AgreedError const& error) {
            return error.code();
        }
        return ExitCode::ok;
    };
    auto deck = deck_with(small_cnn);
    deck.communication.compression = "fp16";
    deck.communication.reduction = "native";
    CHECK(code_of(deck) == ExitCode::usage);
    deck = deck_with(small_cnn, world().size() + 1);
    deck.communication.compression = "powersgd";
    CHECK(code_of(deck) == ExitCode::usage);
    deck.run.replicas = world().size();
    CHECK(code_of(deck) == ExitCode::ok);
}
