// The engine as a whole: weights after some steps are the same bits on any number of ranks. Each
// rank also trains all replicas by itself, alone with its own communicator, and compares.

#include "base/text.hpp"
#include "comm/collectives.hpp"
#include "train/evaluate.hpp"

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/utils/clip_grad.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>

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

/// One layer that learns, one that never takes part, and one that does for few of the samples, and
/// so on some replicas only.
class Branching : public nn::Model {
  public:
    explicit Branching(bool branches)
        : branches_(branches), used_(torch::nn::Linear(side * side, 3)),
          spare_(torch::nn::Linear(side * side, 3)), rare_(torch::nn::Linear(side * side, 3)) {
        torch::NoGradGuard const no_grad;
        for (auto const& [layer, name] :
             {std::pair{used_, "used"}, std::pair{spare_, "spare"}, std::pair{rare_, "rare"}}) {
            register_module(name, layer);
            layer->weight.fill_(0.1);
            layer->bias.zero_();
        }
    }

    torch::Tensor forward(nn::Fields const& inputs) override {
        auto const flat = inputs.only().flatten(1);
        auto found = used_->forward(flat);
        if (branches_ && std::fmod(flat.sum().item<double>() * 255, 3) < 1) {
            found = found + rare_->forward(flat);
        }
        return found;
    }

  private:
    bool branches_;
    torch::nn::Linear used_;
    torch::nn::Linear spare_;
    torch::nn::Linear rare_;
};

/// What a step says that ends with 64 on this rank.
template <class Failure>
std::string refused_step(Training& training) {
    try {
        training.step();
    } catch (Failure const& error) {
        CHECK(error.code() == ExitCode::usage);
        return error.what();
    }
    CHECK(false); // it went well
    return {};
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
            auto const hash = ours.engine().hash_weights();
            CHECK(hash.value == reference.engine().hash_weights().value);
            CHECK(hash.diverged.empty());
            CHECK(hashes.insert(hash.value).second);
        }
        CHECK_NOTHROW(ours.engine().check_replicas(5));
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
        CHECK_NOTHROW(training.engine().check_replicas(4));
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
        CHECK_NOTHROW(ours.engine().check_replicas(4));
    }
}

TEST_CASE("a step is that of the mean loss over all samples, as torch alone takes it") {
    train::configure_torch(config::Run{});
    SharedSet const set(world());
    auto deck = deck_with({"mlp", {{"hidden", "70, 33"}}});
    deck.optimizer.name = "sgd";
    deck.optimizer.weight_decay = 0;
    deck.optimizer.clip_norm = GENERATE(0.0, 0.01, 1e3);
    CAPTURE(deck.optimizer.clip_norm);
    Training training(world(), set.get(), deck);
    auto const outcome = training.step(0.1);

    auto const model = nn::make_model(deck.model, {{side, side}, 3}, 3);
    data::Batch batch;
    batch.indices = training.plan().indices(0, {0, training.plan().samples_in_step(0)});
    data::Scratch scratch;
    set.get().read(batch, scratch);
    auto const tensors =
        train::to_tensors(batch, set.get().inputs(), set.get().targets(), torch::kCPU);
    auto const loss = torch::nn::functional::cross_entropy(model->forward(tensors.inputs),
                                                           tensors.targets.only());
    loss.backward();
    CHECK(outcome.loss_sum / outcome.weight == Approx(loss.item<double>()).epsilon(1e-5));
    auto const norm = torch::nn::utils::clip_grad_norm_(
        model->parameters(), deck.optimizer.clip_norm > 0 ? deck.optimizer.clip_norm : 1e9);
    CHECK(outcome.grad_norm == Approx(norm).epsilon(1e-5));
    CHECK(norm > 0.1); // so that 0.01 clips

    torch::NoGradGuard const no_grad;
    auto const ours = training.model().named_parameters();
    for (auto const& parameter : model->named_parameters()) {
        auto const expected = parameter.value() - 0.1 * parameter.value().grad();
        CHECK(torch::allclose(ours[parameter.key()], expected, 1e-5, 1e-7));
    }
}

TEST_CASE("a parameter that no replica used stays as it is, and so does what one used alone") {
    train::configure_torch(config::Run{});
    SharedSet const set(world());
    auto const alone = comm::Communicator::self();
    auto deck = deck_with({"mlp", {}});
    deck.optimizer.name = "adamw";
    deck.optimizer.weight_decay = 0.1; // would move it
    deck.communication.unused_parameters = true;
    deck.communication.static_graph = GENERATE(false, true);
    CAPTURE(deck.communication.static_graph);
    auto const make = [&] { return std::make_shared<Branching>(!deck.communication.static_graph); };
    Training ours(world(), set.get(), deck, 0, {}, make);
    Training reference(alone, set.get(), deck, 0, {}, make);
    auto const before = ours.model().named_parameters()["spare.weight"].clone();
    auto const rare_before = ours.model().named_parameters()["rare.weight"].clone();
    for (int step = 0; step < 4; ++step) {
        ours.step();
        reference.step();
        CHECK(same_bits(ours.model(), reference.model()));
    }
    CHECK(torch::equal(ours.model().named_parameters()["spare.weight"], before));
    CHECK(torch::equal(ours.model().named_parameters()["rare.weight"], rare_before) ==
          deck.communication.static_graph);
    CHECK_NOTHROW(ours.engine().check_replicas(4));
}

TEST_CASE("a parameter that no replica used is named on all ranks") {
    SharedSet const set(world());
    auto const deck = deck_with({"mlp", {}});
    Training training(world(), set.get(), deck, 0, {},
                      [] { return std::make_shared<Branching>(true); });
    auto const message = refused_step<AgreedError>(training);
    CAPTURE(message);
    CHECK(message.find("parameter spare.") != std::string::npos);
    CHECK(message.find("got no gradient") != std::string::npos);
}

TEST_CASE("a step's figures are over the samples of all replicas") {
    SharedSet const set(world());
    Training training(world(), set.get(), deck_with({"mlp", {}}));
    double samples_seen = 0;
    for (std::int64_t step = 0; step < training.plan().steps_per_epoch(); ++step) {
        auto const outcome = training.step();
        CHECK(outcome.weight == static_cast<double>(training.plan().samples_in_step(step)));
        auto const& counts = outcome.counts; // hit, truly, predicted of three classes
        CHECK(counts[1] + counts[4] + counts[7] == training.plan().samples_in_step(step));
        CHECK(counts[2] + counts[5] + counts[8] == training.plan().samples_in_step(step));
        samples_seen += outcome.weight;
    }
    CHECK(samples_seen == samples);
}

TEST_CASE("a rank whose weights differ is named on every rank") {
    if (world().size() < 2) {
        return; // one rank has nobody to differ from
    }
    SharedSet const set(world());
    // With parameters of their own: those of one host are one array.
    Training training(world(), set.get(), deck_with({"mlp", {}}), 1);
    training.step();
    int const odd = world().size() - 1;
    if (world().rank() == odd) {
        torch::NoGradGuard const no_grad;
        training.model().parameters().front().view(-1)[0].add_(1e-3);
    }
    auto const first = training.engine().nodes()[static_cast<std::size_t>(odd)].first;
    CHECK(training.engine().hash_weights().diverged ==
          concat("replica ", first, " on rank ", odd, " differ from replica 0's, first in ",
                 training.model().named_parameters()[0].key()));
    int named = -1;
    auto code = ExitCode::ok;
    try {
        training.engine().check_replicas(1);
    } catch (AgreedError const& error) {
        named = error.rank();
        code = error.code();
    }
    CHECK(code == ExitCode::rank_lost);
    auto const all = comm::all_gather(world(), named);
    CHECK(std::all_of(all.begin(), all.end(), [&](int each) { return each == named; }));
    if (world().size() > 2) { // of two, nobody knows which is right
        CHECK(named == odd);
    }
}

TEST_CASE("what lies between parameters is not hashed, the buffers are") {
    SharedSet const set(world());
    Training training(world(), set.get(), deck_with({"cnn", {}}), 1);
    auto& engine = training.engine();
    training.step();
    auto const before = engine.hash_weights().value;
    auto const& last = engine.layout().entries.back();
    REQUIRE(last.first + last.count < engine.layout().size);
    auto* const behind =
        training.model().named_parameters()[last.name].data_ptr<float>() + last.count;
    *behind += 1;
    CHECK(engine.hash_weights().value == before);
    auto const kept = training.model().parameters().front().clone();
    training.step(0); // moves nothing but running statistics
    CHECK(torch::equal(training.model().parameters().front(), kept));
    CHECK(engine.hash_weights().value != before);
    CHECK(engine.hash_weights().diverged.empty());
}

TEST_CASE("a loss that is not finite ends all ranks alike, and names the replica") {
    SharedSet const set(world());
    Training training(world(), set.get(), deck_with({"mlp", {}}));
    training.step(std::numeric_limits<double>::infinity());
    auto const message = refused_step<train::Diverged>(training);
    CHECK(message.find("the loss of replica 0 is not finite") != std::string::npos);
}

TEST_CASE("a signal to any rank and the clock of rank 0 are known to all") {
    SharedSet const set(world());
    auto const deck = deck_with({"mlp", {}});
    auto const last = world().size() - 1;
    data::TrainPlan const plan({.samples = samples, .batch = 3, .replicas = max_replicas()});
    auto const model = nn::make_model(deck.model, {{side, side}, 3}, 3);
    auto const task = task::make_task(deck.task, task::Samples::of(set.get()));
    train::Engine engine({world(), deck, *model, *task, torch::kCPU});
    auto const node = engine.nodes()[static_cast<std::size_t>(world().rank())];
    data::Loader loader(set.get(),
                        [&](std::int64_t k) -> std::optional<std::vector<std::int64_t>> {
                            return plan.indices(
                                0, plan.part(0, 0, node.first + static_cast<int>(k % node.count)));
                        },
                        {1, 2});
    train::LoadedBatches batches(loader, set.get().inputs(), set.get().targets(), torch::kCPU);
    auto const outcome = engine.step({.batches = batches,
                                      .rate = 0.01,
                                      .signal = world().rank() == last ? 15 : 0,
                                      .minutes_passed = world().is_root()});
    CHECK(outcome.signal == 15);
    CHECK(outcome.signalled_rank == last);
    CHECK(outcome.minutes_passed);
}

TEST_CASE("a measurement that fails leaves the model as it was found") {
    SharedSet const set(world());
    auto const deck = deck_with({.name = "mlp"});
    auto const task = task::make_task(deck.task, task::Samples::of(set.get()));
    auto const model = nn::make_model(deck.model, {{side, side}, 3}, 1);
    for (bool const training : {true, false}) {
        model->train(training);
        train::EvaluateOptions const options{
            .loader = {1, 1}, .stop = [](auto, auto) -> bool { throw std::runtime_error("no"); }};
        CHECK_THROWS(train::evaluate(world(), *model, *task, set.get(), options));
        CHECK(model->is_training() == training);
    }
}
