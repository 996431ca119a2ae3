#include "base/text.hpp"
#include "comm/agree.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/data/dataset.hpp"
#include "lockstep/monitor/collective_command.hpp"
#include "lockstep/train/trainer.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <iterator>

#include "../output_file.hpp"
#include "../train_side_options.hpp"
#include "commands.hpp"
#include "deck_on_all_ranks.hpp"
#include "model_file.hpp"

namespace lockstep::app {

namespace {

/// The files that a deck names for data, models and teachers. A set that cannot be found is none.
std::vector<std::filesystem::path> files_named_by(config::Deck const& deck) {
    std::vector<std::filesystem::path> files{deck.model.weights, deck.distill.teacher,
                                             deck.distill.teacher_deck, deck.distill.outputs};
    for (auto const& set : {deck.data.train, deck.data.validation, deck.data.test}) {
        try {
            std::ranges::move(data::expand_files(set), std::back_inserter(files));
        } catch (Error const&) { // whoever reads it says so
        }
    }
    for (auto const& [key, value] : deck.model.own) {
        files.emplace_back(value); // such as model.file
    }
    return files;
}

/// What would keep the outputs from being written at the end.
///
/// Collective  over `world`
void require_place(comm::Communicator const& world, EvaluateTold const& told,
                   std::vector<std::filesystem::path> const& inputs) {
    comm::agree(world, "looking for the place of the outputs", [&] {
        if (!world.is_root() || told.outputs.empty()) {
            return;
        }
        require_free(told.outputs, told.overwrite);
        for (auto const& input : inputs) {
            require_other_file(told.outputs, input);
        }
        auto const directory = std::filesystem::absolute(told.outputs).parent_path();
        if (!std::filesystem::is_directory(directory)) {
            throw Error(ExitCode::cannot_create,
                        {concat("cannot create ", told.outputs.string()),
                         concat("there is no directory ", directory.string()),
                         "Create this directory, or name a file in another directory"});
        }
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
            auto inputs = files_named_by(deck);
            inputs.insert(inputs.end(), {path, invocation.arguments.front()});
            require_place(context.world, told, inputs);
            auto const measured =
                train::evaluate_file(context.world, deck, path, told.outputs, told.force);
            if (context.world.is_root()) {
                for (auto const& each : measured.forced) {
                    std::cerr << "lockstep: warning: " << each << "\n";
                }
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
                if (!told.outputs.empty()) {
                    std::cout << "the outputs are in " << told.outputs.string() << "\n";
                }
            }
            return ExitCode::ok;
        });
}

} // namespace lockstep::app
