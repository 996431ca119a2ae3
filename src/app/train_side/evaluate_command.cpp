#include "lockstep/base/text.hpp"
#include "lockstep/checkpoint/verify.hpp"
#include "lockstep/comm/agree.hpp"
#include "lockstep/monitor/collective_command.hpp"
#include "lockstep/train/trainer.hpp"

#include <iostream>

#include "commands.hpp"
#include "deck_on_all_ranks.hpp"

namespace lockstep::app {

ExitCode evaluate_command(Invocation const& invocation) {
    auto arguments = invocation.arguments;
    constexpr char const* usage = "lockstep evaluate DECK CHECKPOINT [--section.key VALUE]...";
    if (take_flag(arguments, "--help")) {
        std::cout << usage
                  << "\n    Measures data.test, or data.validation where the deck has no "
                     "test set, with a checkpoint\n    or a best.h5. The figures are the "
                     "same on any number of ranks.\n";
        return ExitCode::ok;
    }
    return monitor::run_collectively(
        invocation.argc, invocation.argv, [&](monitor::CommandContext& context) {
            auto const [deck, others] = read_deck(context.world, arguments, 1);
            comm::agree(context.world, "reading the command line",
                        [&, &others = others] { expect_arguments(others, 1, 1, usage); });
            context.watchdog.set_patience(static_cast<double>(deck.communication.timeout_seconds));
            context.session.bind_device(train::device_of_rank(context.world, deck.run));
            checkpoint::verify_together(context.world, others[0]);
            auto const measured = train::evaluate_file(context.world, deck, others[0]);
            if (context.world.is_root()) {
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
