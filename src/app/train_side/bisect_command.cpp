#include "lockstep/monitor/collective_command.hpp"
#include "lockstep/train/trainer.hpp"
#include "measure/train_side/bisect.hpp"
#include "monitor/watchdog.hpp"

#include <utility>

#include "../agreed_words.hpp"
#include "../train_side_options.hpp"
#include "commands.hpp"
#include "deck_of_run.hpp"

namespace lockstep::app {

ExitCode bisect_command(Invocation const& invocation) {
    SignalRequests const signals;
    return monitor::run_collectively(
        invocation.argc, invocation.argv, [&](monitor::CommandContext& context) {
            auto const& world = context.world;
            NothingTold told;
            auto const words = agreed_words(world, bisect_options(told), invocation.arguments);
            bool begun = false;
            auto const deck_of = [&](measure::ReplayStart const& start) {
                auto deck = deck_of_run(world, start, words.keys);
                context.watchdog.set_patience(
                    static_cast<double>(deck.communication.timeout_seconds));
                if (!std::exchange(begun, true)) {
                    context.session.bind_device(train::device_of_rank(world, deck.run));
                }
                return deck;
            };
            return measure::bisect(world, {words.positions[0], words.positions[1]}, deck_of,
                                   signals);
        });
}

} // namespace lockstep::app
