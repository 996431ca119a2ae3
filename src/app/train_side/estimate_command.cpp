#include "lockstep/monitor/collective_command.hpp"
#include "measure/train_side/estimate.hpp"

#include <algorithm>

#include "../train_side_options.hpp"
#include "commands.hpp"
#include "deck_on_all_ranks.hpp"

namespace lockstep::app {

ExitCode estimate_command(Invocation const& invocation) {
    return monitor::run_collectively(
        invocation.argc, invocation.argv, [&](monitor::CommandContext& context) {
            measure::EstimateOptions told;
            auto const deck = begin_with_deck(context, estimate_options(told), invocation, 1).deck;
            std::sort(told.batches.begin(), told.batches.end());
            measure::estimate(context.world, deck, told);
            return ExitCode::ok;
        });
}

} // namespace lockstep::app
