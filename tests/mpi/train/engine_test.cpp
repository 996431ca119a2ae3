// The engine as a whole: weights after some steps are the same bits on any number of ranks. Each
// rank also trains all replicas by itself, alone with its own communicator, and compares.

#include "comm/collectives.hpp"
#include "device/configure_torch.hpp"
#include "exchange/choose_exchange.hpp"

#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "catch.hpp"
#include "training.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

/// The floats of each replica that this engine hosts, as its checkpoint would have them.
std::map<int, std::vector<float>> kept_buffers(train::Engine& engine, comm::TreeNode node) {
    auto const snapshot = engine.state().snapshot();
    std::map<int, std::vector<float>> kept;
    for (std::size_t i = 0; i < snapshot.arrays.size(); ++i) {
        if (snapshot.arrays[i].name != "state/replicas/buffers_f32") {
            continue;
        }
        for (auto const& part : snapshot.parts[i]) {
            auto const replica = node.first + static_cast<int>(kept.size());
            auto& floats = kept[replica];
            floats.resize(part.bytes.size() / sizeof(float));
            std::memcpy(floats.data(), part.bytes.data(), part.bytes.size());
            CHECK(part.first == static_cast<std::uint64_t>(replica) * floats.size());
        }
    }
    return kept;
}

} // namespace

TEST_CASE("weights, buffers and figures have the bits of one rank after every step") {
    train::configure_torch(config::Run{});
    SharedSet const set(world());
    auto const alone = comm::Communicator::self();
    for (config::Model const& chosen :
         {config::Model{"mlp", {{"hidden", "300, 200"}, {"dropout", "0.3"}}},
          config::Model{"cnn", {{"channels", "3, 5"}, {"hidden", "16"}, {"dropout", "0.2"}}}}) {
        CAPTURE(chosen.name);
        auto const deck = deck_with(chosen);
        Training ours(world(), set.get(), deck);
        Training reference(alone, set.get(), deck);
        REQUIRE(ours.plan().samples_in_step(ours.plan().steps_per_epoch() - 1) %
                    (2 * deck.run.replicas) !=
                0); // the last is dealt unevenly
        std::set<std::uint64_t> hashes;
        for (int step = 0; step < 5; ++step) {
            CAPTURE(step);
            auto const outcome = ours.step();
            auto const expected = reference.step();
            CHECK(outcome.loss_sum == expected.loss_sum);
            CHECK(outcome.weight == expected.weight);
            CHECK(outcome.counts == expected.counts);
            CHECK(outcome.counts.size() == 9);
            CHECK(outcome.grad_norm == expected.grad_norm);
            CHECK(outcome.grad_norm > 0);
            CHECK(same_bits(ours.model(), reference.model()));
            auto const hash = ours.engine().replica_check().hash();
            CHECK(hash.value == reference.engine().replica_check().hash().value);
            CHECK(hash.diverged.empty());
            CHECK(hashes.insert(hash.value).second);
        }
        CHECK_NOTHROW(ours.engine().replica_check().require_same(5));
    }
}

TEST_CASE("eight replicas have the same bits after fifty steps on any ranks, hosts and threads") {
    train::configure_torch(config::Run{});
    SharedSet const set(world());
    auto const alone = comm::Communicator::self();
    auto deck = deck_with({"cnn", {{"channels", "3, 5"}, {"hidden", "16"}, {"dropout", "0.2"}}}, 8);
    Training reference(alone, set.get(), deck);
    auto concurrent = deck;
    concurrent.run.mode = "dp";
    Training on_threads(alone, set.get(), concurrent);
    auto everywhere = deck;
    everywhere.optimizer.update = "replicated";
    std::vector<std::unique_ptr<Training>> others;
    others.push_back(std::make_unique<Training>(world(), set.get(), deck));
    others.push_back(std::make_unique<Training>(world(), set.get(), deck, 1));
    others.push_back(std::make_unique<Training>(world(), set.get(), deck, 2));
    others.push_back(std::make_unique<Training>(world(), set.get(), everywhere));
    others.push_back(std::make_unique<Training>(world(), set.get(), everywhere, 2));
    for (int step = 0; step < 50; ++step) {
        CAPTURE(step);
        auto const expected = reference.step();
        on_threads.step();
        CHECK(same_bits(on_threads.model(), reference.model()));
        for (auto const& other : others) {
            CHECK(other->step().grad_norm == expected.grad_norm);
            CHECK(same_bits(other->model(), reference.model()));
        }
    }
}

TEST_CASE("replicas that keep their own buffers have the same bits on any ranks and threads") {
    train::configure_torch(config::Run{});
    SharedSet const set(world());
    auto const alone = comm::Communicator::self();
    auto deck = deck_with({"cnn", {{"channels", "3, 5"}, {"hidden", "16"}, {"dropout", "0.2"}}});
    deck.communication.broadcast_buffers = false;
    auto concurrent = deck;
    concurrent.run.mode = "dp";
    Training ours(world(), set.get(), deck);
    Training reference(alone, set.get(), deck);
    Training on_threads(alone, set.get(), concurrent);
    // Each with its own copy of the parameters, as GPUs have.
    Training on_devices(alone, set.get(), deck, 0, {3, torch::kCPU});
    for (int step = 0; step < 5; ++step) {
        CAPTURE(step);
        ours.step();
        reference.step();
        on_threads.step();
        on_devices.step();
        CHECK(same_bits(ours.model(), reference.model()));
        CHECK(same_bits(on_threads.model(), reference.model()));
        CHECK(same_bits(on_devices.model(), reference.model()));
    }
    // The models show replica 0's only; each replica's are compared in snapshots.
    auto const all = kept_buffers(reference.engine(), reference.engine().nodes()[0]);
    CHECK(static_cast<std::int64_t>(all.size()) == deck.run.replicas);
    auto const node = ours.engine().nodes()[static_cast<std::size_t>(world().rank())];
    auto const own = kept_buffers(ours.engine(), node);
    CHECK(static_cast<int>(own.size()) == node.count);
    for (auto const& [replica, floats] : own) {
        CAPTURE(replica);
        CHECK(floats == all.at(replica));
        CHECK((replica == 0 || floats != all.at(0)));
    }
    CHECK((kept_buffers(on_threads.engine(), on_threads.engine().nodes()[0]) == all));
}

TEST_CASE("native sums are close to ordered ones") {
    train::configure_torch(config::Run{});
    SharedSet const set(world());
    auto deck = deck_with({"mlp", {{"hidden", "70, 33"}}});
    deck.communication.reduction = "native";
    for (std::string const update : {"sharded", "replicated"}) {
        deck.optimizer.update = update;
        Training training(world(), set.get(), deck);
        Training reference(world(), set.get(), deck_with(deck.model));
        for (int step = 0; step < 4; ++step) {
            auto const expected = reference.step();
            auto const outcome = training.step();
            CHECK(outcome.loss_sum == Approx(expected.loss_sum).epsilon(1e-4));
            CHECK(outcome.grad_norm == Approx(expected.grad_norm).epsilon(1e-3));
        }
        CHECK_NOTHROW(training.engine().replica_check().require_same(4));
    }
}

TEST_CASE("norms of entries and averaged weights have the bits of one rank") {
    train::configure_torch(config::Run{});
    SharedSet const set(world());
    auto const alone = comm::Communicator::self();
    for (std::string const name : {"lamb", "lars"}) {
        CAPTURE(name);
        auto deck = deck_with({"mlp", {{"hidden", "300, 200"}}});
        deck.optimizer.name = name;
        deck.optimizer.momentum = 0.9;
        deck.optimizer.ema = 0.7;
        Training ours(world(), set.get(), deck);
        Training reference(alone, set.get(), deck);
        for (int step = 0; step < 4; ++step) {
            ours.step();
            reference.step();
        }
        CHECK(same_bits(ours.model(), reference.model()));
        auto const last = ours.model().parameters().front().clone();
        {
            auto const averaged = ours.engine().averaged_weights();
            auto const averaged_alone = reference.engine().averaged_weights();
            CHECK(same_bits(ours.model(), reference.model()));
            CHECK_FALSE(torch::equal(last, ours.model().parameters().front()));
            comm::barrier(world()); // one array of the host: nobody goes back while others look
        }
        CHECK(torch::equal(last, ours.model().parameters().front()));
        CHECK_NOTHROW(ours.engine().replica_check().require_same(4));
    }
}

TEST_CASE("ranks that cut the arena or deal the replicas in different ways are told so") {
    auto const code_with = [](auto const& change) {
        config::Communication options;
        options.bucket_mb = 0.016;
        options.timeout_seconds = 20;
        train::ExchangeNeeds needs;
        needs.nodes = comm::subtrees_of_ranks(2 * world().size(), world().size());
        needs.size = 10 * comm::reduction_block;
        needs.step_sums = 1;
        if (world().size() > 1 && world().rank() + 1 == world().size()) {
            change(options, needs);
        }
        try {
            train::choose_exchange(world(), options, torch::kCPU, needs);
        } catch (AgreedError const& error) {
            CHECK(error.rank() + 1 == world().size());
            return error.code();
        }
        return ExitCode::ok;
    };
    auto const broken = world().size() > 1 ? ExitCode::software : ExitCode::ok;
    CHECK(code_with([](auto&, auto&) {}) == ExitCode::ok);
    CHECK(code_with([](auto& options, auto&) { options.bucket_mb *= 2; }) == broken);
    CHECK(code_with([](auto&, auto& needs) { needs.size += comm::reduction_block; }) == broken);
    CHECK(code_with([](auto&, auto& needs) { std::swap(needs.nodes[0], needs.nodes[1]); }) ==
          broken);
}
