#include "optimizer/schedule.hpp"

#include <array>

#include "catch.hpp"

using namespace lockstep;

TEST_CASE("after the warm-up the cosine is torch's CosineAnnealingLR") {
    // torch.optim.lr_scheduler.CosineAnnealingLR(T_max=10, eta_min=0.001), rate 0.4, behind a
    // warm-up of 5 steps (SequentialLR, milestone 5).
    constexpr std::array golden{0.4,    0.390236, 0.361899, 0.317763, 0.262149,
                                0.2005, 0.138851, 0.083237, 0.039101, 0.010764};
    config::Deck deck;
    deck.run.replicas = 1;
    deck.optimizer.learning_rate = 0.4;
    deck.schedule.name = "cosine";
    deck.schedule.warmup_steps = 5;
    deck.schedule.minimum = 0.001 / 0.4;
    train::Schedule const schedule(deck, 15, 15);
    for (std::size_t i = 0; i < golden.size(); ++i) {
        CAPTURE(i);
        CHECK(schedule.rate(5 + static_cast<std::int64_t>(i)) == Approx(golden[i]).margin(6e-7));
    }
    for (std::int64_t step = 0; step < 5; ++step) {
        CHECK(schedule.rate(step) == Approx(0.08 * static_cast<double>(step)));
    }
}

TEST_CASE("the longer of the two warm-ups counts, and a run that ends in it is no special case") {
    config::Deck deck;
    deck.run.replicas = 1;
    deck.optimizer.learning_rate = 1;
    deck.schedule.name = "cosine";
    deck.schedule.warmup_steps = 10;
    deck.schedule.warmup_epochs = 0.25;
    train::Schedule const schedule(deck, 100, 20);
    CHECK(schedule.rate(10) == Approx(0.4));
    CHECK(schedule.rate(19) == Approx(0.76));
    CHECK(schedule.rate(25) == Approx(1));
}
