// Parameters that take no part in a step: on some replicas, or on none.

#include "device/configure_torch.hpp"

#include <torch/nn/modules/linear.h>

#include <cmath>
#include <utility>

#include "catch.hpp"
#include "training.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

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

} // namespace

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
    CHECK_NOTHROW(ours.engine().replica_check().require_same(4));
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
