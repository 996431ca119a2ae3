// What hosts compute, compared: no alarm and the same bits where all are sound, and who is
// convicted where one is not. Each rank is a host of its own.

#include "base/text.hpp"
#include "comm/collectives.hpp"
#include "device/configure_torch.hpp"
#include "step/computed_wrongly.hpp"

#include <algorithm>
#include <optional>

#include "catch.hpp"
#include "training.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

std::vector<std::string> hosts() {
    std::vector<std::string> names;
    for (int rank = 0; rank < world().size(); ++rank) {
        names.push_back(concat("host", rank));
    }
    return names;
}

/// Turns a bit of one element of a rank's gradients over, in each backward.
void break_rank(Training& training, int rank, std::size_t parameter) {
    if (world().rank() == rank) {
        training.model().parameters().at(parameter).register_hook([](torch::Tensor gradient) {
            auto copy = gradient.clone(at::MemoryFormat::Contiguous);
            auto const at = copy.view({-1}).abs().argmax().item<std::int64_t>();
            copy.view({-1}).narrow(0, at, 1).view(torch::kInt32).bitwise_xor_(1 << 22);
            return copy;
        });
    }
}

/// Steps with a check in each until one fails; how it fails.
struct Found {
    std::int64_t check = -1;
    std::optional<train::ComputedWrongly> wrong;
};
Found find(Training& training, std::int64_t max) {
    for (std::int64_t check = 0; check < max; ++check) {
        try {
            training.step(0.05, false, check);
        } catch (train::ComputedWrongly const& wrong) {
            return {check, wrong};
        }
    }
    return {};
}

} // namespace

TEST_CASE("steps that are checked have the bits of others, buffers and dropout included") {
    train::configure_torch(config::Run{});
    SharedSet const set(world());
    config::Model const model{"cnn", {{"channels", "3, 5"}, {"hidden", "16"}, {"dropout", "0.2"}}};
    for (auto const* const mode : {"auto", "dp"}) {
        for (auto const* const update : {"sharded", "replicated", "sharded-gradients"}) {
            CAPTURE(mode, update);
            auto deck = deck_with(model);
            deck.run.mode = mode;
            deck.optimizer.update = update;
            Training plain(world(), set.get(), deck);
            Training checked(world(), set.get(), deck, 0, {}, {}, hosts());
            train::CheckRotation const rotation(checked.engine().nodes(), hosts());
            for (std::int64_t check = 0; check < std::min<std::int64_t>(rotation.period(), 24);
                 ++check) {
                CAPTURE(check);
                CHECK(!plain.step().checked);
                auto const outcome = checked.step(0.05, false, check);
                REQUIRE(outcome.checked);
                CHECK(outcome.checked->replica == rotation.at(check).replica);
                CHECK(same_bits(plain.model(), checked.model()));
            }
        }
    }
}

TEST_CASE("a flipped bit of a gradient convicts its host at the next check of that host") {
    train::configure_torch(config::Run{});
    SharedSet const set(world());
    int const broken = world().size() - 1;
    for (std::size_t const parameter : {0, 2}) {
        CAPTURE(parameter);
        Training training(world(), set.get(), deck_with({"mlp", {{"hidden", "30, 20"}}}), 0, {}, {},
                          hosts());
        train::CheckRotation const rotation(training.engine().nodes(), hosts());
        break_rank(training, broken, parameter);
        std::int64_t first = 0;
        while (rotation.at(first).owner != broken && rotation.at(first).second != broken) {
            ++first;
        }
        auto const before = training.model().parameters().front().clone();
        auto const found = find(training, rotation.period());
        CHECK(found.check == first);
        REQUIRE(found.wrong);
        CHECK(found.wrong->code() == ExitCode::rank_lost);
        std::string const text = found.wrong->what();
        CAPTURE(text);
        auto const name = training.model().named_parameters()[parameter].key();
        CHECK(text.find(concat("the gradient of ", name, "[")) != std::string::npos);
        CHECK(text.find(concat("] of replica ", rotation.at(first).replica, " is ")) !=
              std::string::npos);
        if (world().size() > 2) {
            CHECK(found.wrong->suspects() == std::vector{broken});
            CHECK(found.wrong->rank() == broken);
            CHECK(text.starts_with("this host computes wrongly"));
        } else {
            CHECK(found.wrong->suspects().size() == 2);
            CHECK(text.find("two cannot decide") != std::string::npos);
        }
        auto const texts = comm::all_gather_text(world(), text);
        CHECK(std::ranges::all_of(texts, [&](auto const& each) { return each == text; }));
    }
}
