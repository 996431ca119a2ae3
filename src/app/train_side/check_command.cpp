#include "base/text.hpp"
#include "comm/agree.hpp"
#include "lockstep/config/deck_source.hpp"
#include "lockstep/monitor/collective_command.hpp"
#include "lockstep/train/trainer.hpp"
#include "measure/train_side/check_launch.hpp"
#include "measure/train_side/check_probes.hpp"
#include "measure/train_side/check_training.hpp"
#include "monitor/watchdog.hpp"

#include <iostream>

#include "../agreed_words.hpp"
#include "../train_side_options.hpp"
#include "commands.hpp"
#include "deck_on_all_ranks.hpp"

namespace lockstep::app {

namespace {

constexpr double patience_s = 30; ///< of the watchdog, for whatever a probe waits for

/// Collective  over the world
/// Returns     bytes per second of a checkpoint
double check_machine(measure::CheckContext const& context, config::Run const& run) {
    auto const rate = measure::check_disk(context, run.directory);
    measure::check_network(context);
    measure::check_speed(context, run);
    return rate;
}

/// Collective  over the world
measure::CheckSubject subject_of(comm::Communicator const& world, Words const& words) {
    measure::CheckSubject subject;
    if (!words.positions.empty()) {
        subject.deck_file = words.positions.front();
        subject.deck = read_deck(world, words, 1).deck;
        subject.run = subject.deck->run;
        return subject;
    }
    comm::agree(world, "reading the command line", [&] {
        config::DeckSource source;
        source.take_options(words.keys);
        subject.run = source.parse().run;
    });
    if (subject.run.directory.empty()) {
        subject.run.directory = "runs/check";
    }
    return subject;
}

} // namespace

ExitCode check_command(Invocation const& invocation) {
    return monitor::run_collectively(
        invocation.argc, invocation.argv, [&](monitor::CommandContext& context) {
            auto const& world = context.world;
            context.watchdog.set_patience(patience_s);
            CheckTold told;
            auto const words = agreed_words(world, check_options(told), invocation.arguments);
            measure::CheckReport report(told.json, world.is_root());
            auto const subject = subject_of(world, words);
            auto const topology = comm::Topology::discover(world);
            try {
                context.session.bind_device(train::device_of_rank(world, subject.run));
            } catch (AgreedError const& error) {
                report.add({Colour::red, "devices",
                            concat(error.text().what, ": ", error.text().why), error.text().next});
            }
            measure::CheckContext const parts{world, topology, report};
            measure::check_launch(parts, subject);
            // Measured now, everything would be of the wrong launch.
            auto const write_rate =
                report.colour() == Colour::red ? 0 : check_machine(parts, subject.run);
            if (subject.deck && report.colour() != Colour::red) {
                auto const timeout = subject.deck->communication.timeout_seconds;
                context.watchdog.set_patience(static_cast<double>(timeout));
                measure::check_training(parts, *subject.deck, write_rate);
            }
            report.print_summary();
            return report.colour() == Colour::red ? ExitCode::unavailable : ExitCode::ok;
        });
}

} // namespace lockstep::app
