#include "base/text.hpp"
#include "lockstep/monitor/collective_command.hpp"
#include "lockstep/train/trainer.hpp"

#include <cmath>
#include <iostream>

#include "../train_side_options.hpp"
#include "commands.hpp"
#include "deck_on_all_ranks.hpp"
#include "model_file.hpp"

namespace lockstep::app {

ExitCode evaluate_command(Invocation const& invocation) {
    return monitor::run_collectively(
        invocation.argc, invocation.argv, [&](monitor::CommandContext& context) {
            NothingTold nothing;
            auto const [deck, others, places] =
                begin_with_deck(context, evaluate_options(nothing), invocation, 1);
            auto const path = model_file(context.world, others[0]);
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
