#include "base/notice.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/monitor/collective_command.hpp"
#include "lockstep/train/evaluate_file.hpp"
#include "train/not_finite.hpp"

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "../output_file.hpp"
#include "../train_side_options.hpp"
#include "commands.hpp"
#include "deck_on_all_ranks.hpp"
#include "model_file.hpp"

namespace lockstep::app {

namespace {

/// What would keep the outputs from being written at the end.
///
/// Collective  over `world`
void require_place(comm::Communicator const& world, EvaluateTold const& told,
                   config::Deck const& deck, std::vector<std::filesystem::path> const& inputs) {
    comm::agree(world, "looking for the place of the outputs", [&] {
        if (!world.is_root() || told.outputs.empty()) {
            return;
        }
        require_free(told.outputs, told.overwrite);
        for (auto const& input : inputs) {
            require_other_file(told.outputs, input);
        }
        require_not_named(told.outputs, deck, DeckFrom::user);
        require_directory_of(told.outputs);
    });
}

} // namespace

ExitCode evaluate_command(Invocation const& invocation) {
    return monitor::run_collectively(
        invocation.argc, invocation.argv, [&](monitor::CommandContext& context) {
            EvaluateTold told;
            auto const [deck, others, places] =
                begin_with_deck(context, evaluate_options(told), invocation, 1);
            auto const path = model_file(context.world, others[0]);
            require_place(context.world, told, deck, {path, invocation.arguments.front()});
            auto const measured =
                train::evaluate_file(context.world, deck, path, told.outputs, told.force);
            if (context.world.is_root()) {
                std::ranges::for_each(measured.remarks, notice);
                if (path != others[0]) {
                    std::cout << "with " << path << "\n";
                }
                if (auto const text = train::not_finite_text(measured); !text.empty()) {
                    notice(concat("warning: ", text));
                }
                std::cout << measured.set << ": " << count_text(measured.samples)
                          << " samples, loss " << fixed(measured.loss, 6);
                for (auto const& [name, value] : measured.metrics) {
                    std::cout << ", " << name << " " << fixed(value, 6);
                }
                std::cout << "\n";
                if (!told.outputs.empty()) {
                    std::cout << "the outputs are in " << told.outputs.string() << "\n";
                }
            }
            return ExitCode::ok;
        });
}

} // namespace lockstep::app
