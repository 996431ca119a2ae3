#include "comm/agree.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/monitor/collective_command.hpp"
#include "lockstep/train/trainer.hpp"
#include "measure/train_side/replay.hpp"
#include "monitor/watchdog.hpp"

#include "../agreed_words.hpp"
#include "../output_file.hpp"
#include "../train_side_options.hpp"
#include "commands.hpp"
#include "deck_of_run.hpp"

namespace lockstep::app {

namespace {

/// What is wrong with the command line, before anything is done.
///
/// Collective  over `world`
void require_sound(comm::Communicator const& world, ReplayTold const& told) {
    comm::agree(world, "reading the command line", [&] {
        auto const& options = told.options;
        if (options.step < 1 && !options.until_nonfinite) {
            throw Error(ExitCode::usage, {"no step was named", "a replay ends with a step",
                                          "Add --step N, or --until-nonfinite"});
        }
        if (world.is_root() && !options.dump.empty()) {
            require_free(options.dump, told.overwrite);
            require_directory_of(options.dump);
        }
    });
}

} // namespace

ExitCode replay_command(Invocation const& invocation) {
    SignalRequests const signals;
    return monitor::run_collectively(
        invocation.argc, invocation.argv, [&](monitor::CommandContext& context) {
            ReplayTold told;
            auto const words =
                agreed_words(context.world, replay_options(told), invocation.arguments);
            require_sound(context.world, told);
            auto const start =
                measure::agreed_start(context.world, words.positions.front(), told.options.step);
            auto const deck = deck_of_run(context.world, start, words.keys);
            context.watchdog.set_patience(static_cast<double>(deck.communication.timeout_seconds));
            context.session.bind_device(train::device_of_rank(context.world, deck.run));
            return measure::replay(context.world, start, deck, told.options, signals);
        });
}

} // namespace lockstep::app
