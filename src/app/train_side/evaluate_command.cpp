#include "base/text.hpp"
#include "checkpoint/store.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "lockstep/monitor/collective_command.hpp"
#include "lockstep/train/trainer.hpp"

#include <cmath>
#include <iostream>

#include "../train_side_options.hpp"
#include "commands.hpp"
#include "deck_on_all_ranks.hpp"

namespace lockstep::app {

namespace {

/// The file itself; of a run's directory the model that the run would test.
///
/// Collective  over `world`
std::string file_of(comm::Communicator const& world, std::string const& named) {
    auto path = named;
    comm::agree(world, "looking for the model", [&] {
        if (!world.is_root() || !std::filesystem::is_directory(named)) {
            return;
        }
        auto const run = std::filesystem::path(named);
        auto const checkpoints = checkpoint::Store(run / "checkpoints", 1).list();
        if (std::filesystem::exists(run / "best.h5")) {
            path = run / "best.h5";
        } else if (!checkpoints.empty()) {
            path = checkpoints.front().path;
        } else {
            throw Error(ExitCode::no_input,
                        {concat("no model in ", named), "it has neither best.h5 nor a checkpoint",
                         "Name a run's directory or a file"});
        }
    });
    comm::broadcast_text(world, path);
    return path;
}

} // namespace

ExitCode evaluate_command(Invocation const& invocation) {
    return monitor::run_collectively(
        invocation.argc, invocation.argv, [&](monitor::CommandContext& context) {
            NothingTold nothing;
            auto const [deck, others, places] =
                begin_with_deck(context, evaluate_options(nothing), invocation, 1);
            auto const path = file_of(context.world, others[0]);
            auto const measured = train::evaluate_file(context.world, deck, path);
            if (context.world.is_root()) {
                if (path != others[0]) {
                    std::cout << "with " << path << "\n";
                }
                if (!std::isfinite(measured.loss)) {
                    std::cerr
                        << "lockstep: warning: the loss is not finite: a sample of the set or "
                           "an output of the model is not finite\n";
                }
                std::cout << measured.set << ": " << count_text(measured.samples)
                          << " samples, loss " << fixed(measured.loss, 6);
                for (auto const& [name, value] : measured.metrics) {
                    std::cout << ", " << name << " " << fixed(value, 6);
                }
                std::cout << "\n";
            }
            return ExitCode::ok;
        });
}

} // namespace lockstep::app
