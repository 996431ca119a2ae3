#include "base/text.hpp"
#include "comm/agree.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/monitor/collective_command.hpp"
#include "lockstep/train/trainer.hpp"
#include "measure/train_side/replay.hpp"
#include "monitor/watchdog.hpp"

#include <algorithm>
#include <filesystem>

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
        if (told.overwrite && options.dump.empty()) {
            throw Error(ExitCode::usage,
                        {"--overwrite is given without --dump",
                         "it replaces the file that --dump names", "Add --dump FILE.h5"});
        }
        if (world.is_root() && !options.dump.empty()) {
            require_free(options.dump, told.overwrite);
            require_directory_of(options.dump);
        }
    });
}

/// A dump replaces nothing that the run has, or has read.
///
/// Collective  over `world`
void require_other_place(comm::Communicator const& world, std::filesystem::path const& dump,
                         std::filesystem::path const& run, config::Deck const& deck) {
    comm::agree(world, "looking for the place of the dump", [&] {
        if (!world.is_root() || dump.empty()) {
            return;
        }
        require_not_named(dump, deck, DeckFrom::user);
        auto const directory = std::filesystem::canonical(run);
        auto const file = std::filesystem::weakly_canonical(dump);
        if (std::ranges::mismatch(directory, file).in1 == directory.end()) {
            throw Error(
                ExitCode::cannot_create,
                {concat("--dump ", dump.string()),
                 "it would be in the directory of the run, in which a replay changes nothing",
                 "Name a file elsewhere"});
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
            require_other_place(context.world, told.options.dump, start.run, deck);
            context.watchdog.set_patience(static_cast<double>(deck.communication.timeout_seconds));
            context.session.bind_device(train::device_of_rank(context.world, deck.run));
            return measure::replay(context.world, start, deck, told.options, signals);
        });
}

} // namespace lockstep::app
