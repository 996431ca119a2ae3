#include "base/escaped.hpp"
#include "base/notice.hpp"
#include "base/own_directory.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/monitor/collective_command.hpp"
#include "lockstep/train/evaluate_file.hpp"
#include "monitor/confusion_text.hpp"
#include "report/png.hpp"
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

/// What would keep the pictures from being written at the end.
///
/// Collective  over `world`
void require_place_of_pictures(comm::Communicator const& world, EvaluateTold const& told) {
    comm::agree(world, "looking for the place of the pictures", [&] {
        if (told.worst_pictures.empty()) {
            return;
        }
        if (told.worst == 0) {
            throw Error(ExitCode::usage,
                        {"--worst-pictures is given without --worst",
                         "it writes pictures of the samples that --worst names", "Add --worst N"});
        }
        if (world.is_root() && std::filesystem::exists(told.worst_pictures)) {
            throw Error(ExitCode::cannot_create,
                        {concat("cannot create ", told.worst_pictures.string()),
                         "there is something of this name already",
                         "Remove it, or name a new directory in --worst-pictures"});
        }
    });
}

void print_worst(std::vector<train::WorstSample> const& worst, std::int64_t samples) {
    std::cout << "largest losses, " << worst.size() << " of " << count_text(samples)
              << " samples\n";
    for (auto const& each : worst) {
        std::cout << "  sample " << each.sample << " (" << each.file << ", " << each.number_in_file
                  << "): loss " << fixed(each.loss, 6);
        if (!each.truth.empty()) {
            std::cout << ", truth " << escaped_line(each.truth) << ", predicted "
                      << escaped_line(each.prediction);
        }
        std::cout << "\n";
    }
}

/// 0001_sample_17.png is the worst one, sample 17 of the set.
void write_worst(std::vector<train::WorstSample> const& worst,
                 std::filesystem::path const& directory) {
    make_own_directory(directory);
    std::int64_t place = 0;
    for (auto const& each : worst) {
        report::write_png(directory /
                              concat(zero_padded(++place, 4), "_sample_", each.sample, ".png"),
                          each.picture.value());
    }
    std::cout << "pictures of them are in " << directory.string() << "\n";
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
            require_place_of_pictures(context.world, told);
            auto const measured = train::evaluate_file(context.world, deck, path,
                                                       {.outputs = told.outputs,
                                                        .force = told.force,
                                                        .worst = told.worst,
                                                        .pictures = !told.worst_pictures.empty()});
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
                std::cout << "\n" << monitor::confusion_text(measured.confusion);
                if (told.worst > 0) {
                    print_worst(measured.worst, measured.samples);
                }
                if (!told.worst_pictures.empty()) {
                    write_worst(measured.worst, told.worst_pictures);
                }
                if (!told.outputs.empty()) {
                    std::cout << "the outputs are in " << told.outputs.string() << "\n";
                }
            }
            return ExitCode::ok;
        });
}

} // namespace lockstep::app
