#include "lockstep/monitor/collective_command.hpp"
#include "lockstep/train/trainer.hpp"
#include "measure/train_side/estimate.hpp"
#include "monitor/root_cause.hpp"
#include "monitor/watchdog.hpp"

#include <algorithm>

#include "../agreed_words.hpp"
#include "../train_side_options.hpp"
#include "commands.hpp"
#include "deck_on_all_ranks.hpp"

namespace lockstep::app {

ExitCode estimate_command(Invocation const& invocation) {
    return monitor::run_collectively(
        invocation.argc, invocation.argv, [&](monitor::CommandContext& context) {
            auto const& world = context.world;
            measure::EstimateOptions told;
            auto const words = agreed_words(world, estimate_options(told), invocation.arguments);
            std::sort(told.batches.begin(), told.batches.end());
            auto const [deck, others, places] = read_deck(world, words, 1);
            context.root_cause.set_places(places);
            context.watchdog.set_patience(static_cast<double>(deck.communication.timeout_seconds));
            context.session.bind_device(train::device_of_rank(world, deck.run));
            measure::estimate(world, deck, told);
            return ExitCode::ok;
        });
}

} // namespace lockstep::app
