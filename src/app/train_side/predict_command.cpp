#include "base/text.hpp"
#include "batches/model_facts.hpp"
#include "checkpoint/weights.hpp"
#include "comm/agree.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/monitor/collective_command.hpp"
#include "model_files/predict.hpp"

#include <filesystem>
#include <iostream>

#include "../agreed_words.hpp"
#include "../output_file.hpp"
#include "../train_side_options.hpp"
#include "commands.hpp"
#include "model_file.hpp"
#include "predict_inputs.hpp"
#include "saved_deck.hpp"

namespace lockstep::app {

namespace {

/// What would keep the predictions from being written at the end.
///
/// Collective  over `world`
void require_place(comm::Communicator const& world, PredictTold const& told,
                   std::vector<std::string> const& inputs) {
    comm::agree(world, "looking for the place of the predictions", [&] {
        if (!world.is_root()) {
            return;
        }
        require_free(told.output, told.overwrite);
        for (auto const& input : inputs) {
            require_other_file(told.output, input);
        }
        require_directory_of(told.output);
    });
}

} // namespace

ExitCode predict_command(Invocation const& invocation) {
    return monitor::run_collectively(
        invocation.argc, invocation.argv, [&](monitor::CommandContext& context) {
            auto const& world = context.world;
            PredictTold told;
            auto const words = agreed_words(world, predict_options(told), invocation.arguments);
            std::vector<std::string> const inputs(words.positions.begin() + 1,
                                                  words.positions.end());
            auto const path = model_file(world, words.positions.front());
            require_place(world, told, words.positions);
            auto const file = checkpoint::verify_together(world, path);
            auto const deck = begin_with_saved_deck(context, file, words.keys, told.output);
            data::Facts facts;
            comm::agree(world, "reading the model's file", [&] { facts = train::facts_of(file); });
            PredictInputs const samples(
                world, inputs, facts,
                {told.output, told.skip_bad, told.center_crop, told.shorter, told.alpha});
            auto const report =
                train::predict(world, deck, file, samples.samples(), {told.output, told.batch});
            if (world.is_root()) {
                tell(samples.remarks());
                tell(report.remarks);
                std::cout << "with " << path << ": " << count_text(report.samples, "prediction")
                          << " in " << told.output.string() << "\n";
            }
            return ExitCode::ok;
        });
}

} // namespace lockstep::app
