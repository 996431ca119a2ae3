#include "base/text.hpp"
#include "checkpoint/store.hpp"
#include "comm/agree.hpp"
#include "lockstep/monitor/collective_command.hpp"
#include "train/configure_torch.hpp"
#include "train/generate.hpp"

#include <iostream>

#include "../train_side_options.hpp"
#include "commands.hpp"
#include "deck_on_all_ranks.hpp"
#include "model_file.hpp"

namespace lockstep::app {

ExitCode generate_command(Invocation const& invocation) {
    return monitor::run_collectively(
        invocation.argc, invocation.argv, [&](monitor::CommandContext& context) {
            train::GenerateOptions told;
            auto const [deck, others, places] =
                begin_with_deck(context, generate_options(told), invocation, 1);
            auto const path = model_file(context.world, others[0]);
            comm::agree(context.world, "generating a text", [&, &own = deck] {
                if (context.world.size() > 1) {
                    throw Error(ExitCode::usage,
                                {concat("lockstep generate on ", context.world.size(), " ranks"),
                                 "one rank generates a text", "Start it without mpirun"});
                }
                train::configure_torch(own.run);
                train::generate(own, checkpoint::VerifiedFile(path), told,
                                [](std::string_view text) { std::cout << text << std::flush; });
                std::cout << "\n";
            });
            return ExitCode::ok;
        });
}

} // namespace lockstep::app
