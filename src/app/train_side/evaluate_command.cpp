#include "base/escaped.hpp"
#include "base/file.hpp"
#include "base/notice.hpp"
#include "base/own_directory.hpp"
#include "base/partial_file.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/monitor/collective_command.hpp"
#include "lockstep/train/evaluate_file.hpp"
#include "monitor/confusion_text.hpp"
#include "monitor/measured_text.hpp"
#include "monitor/terminal.hpp"
#include "report/png.hpp"
#include "train/not_finite.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "../output_file.hpp"
#include "../train_side_options.hpp"
#include "commands.hpp"
#include "deck_and_model.hpp"

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

/// What would keep the worst samples from being written at the end.
///
/// Collective  over `world`
void require_place_of_worst(comm::Communicator const& world, EvaluateTold const& told) {
    comm::agree(world, "looking for the place of the worst samples", [&] {
        if (told.worst_output.empty()) {
            return;
        }
        if (told.worst == 0) {
            throw Error(ExitCode::usage,
                        {"--worst-output is given without --worst",
                         "it writes the samples that --worst names", "Add --worst N"});
        }
        if (world.is_root() && std::filesystem::exists(told.worst_output)) {
            throw Error(ExitCode::cannot_create,
                        {concat("cannot create ", told.worst_output.string()),
                         "there is something of this name already",
                         "Remove it, or name a new directory in --worst-output"});
        }
    });
}

void print_worst(std::vector<train::WorstSample> const& worst, std::int64_t asked,
                 std::int64_t samples) {
    std::cout << "largest losses, " << worst.size() << " of " << count_text(samples)
              << " samples\n";
    if (auto const none = std::min(asked, samples) - std::ssize(worst); none > 0) {
        std::cout << "  the loss leaves out all targets of " << count_text(none, "other sample")
                  << ", which " << (none == 1 ? "has" : "have")
                  << " none (task.ignore-label, data.mask)\n";
    }
    for (auto const& each : worst) {
        std::cout << "  sample " << each.sample << " (" << each.file << ", " << each.number_in_file
                  << (each.source.empty() ? "" : ": ") << escaped_line(each.source) << "): loss "
                  << fixed(each.loss, 6);
        if (!each.truth.empty()) {
            std::cout << ", truth " << escaped_line(each.truth) << ", predicted "
                      << escaped_line(each.prediction);
        }
        std::cout << "\n";
    }
}

std::string json_line(nlohmann::json const& record) {
    return record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

/// worst.jsonl has a line on the evaluation and a line for each sample; 0001_sample_17.png is the
/// worst one, sample 17 of the set.
void write_worst(train::Measured const& measured, std::filesystem::path const& directory) {
    make_own_directory(directory);
    auto lines =
        json_line({{"event", "worst"}, {"set", measured.set}, {"samples", measured.samples}});
    std::int64_t place = 0;
    for (auto const& each : measured.worst) {
        nlohmann::json line{{"event", "sample"},
                            {"sample", each.sample},
                            {"loss", each.loss},
                            {"truth", each.truth},
                            {"prediction", each.prediction},
                            {"file", each.file},
                            {"number_in_file", each.number_in_file}};
        if (!each.source.empty()) {
            line["source"] = each.source;
        }
        ++place;
        if (each.picture) {
            auto const name = concat(zero_padded(place, 4), "_sample_", each.sample, ".png");
            report::write_png(directory / name, *each.picture);
            line["picture"] = name;
        }
        lines += json_line(line);
    }
    auto const path = directory / "worst.jsonl";
    PartialFile partial(partial_path(path));
    File::create_new(partial.path()).append_text(lines);
    partial.rename_unsynced(path);
    std::cout << "they are in " << directory.string() << "\n";
}

} // namespace

ExitCode evaluate_command(Invocation const& invocation) {
    return monitor::run_collectively(
        invocation.argc, invocation.argv, [&](monitor::CommandContext& context) {
            EvaluateTold told;
            auto const [deck, path, named] =
                begin_with_model(context, evaluate_options(told), invocation, told.outputs);
            require_place(context.world, told, deck, {path, invocation.arguments.front()});
            require_place_of_worst(context.world, told);
            auto const measured = train::evaluate_file(context.world, deck, path,
                                                       {.outputs = told.outputs,
                                                        .force = told.force,
                                                        .worst = told.worst,
                                                        .pictures = !told.worst_output.empty()});
            if (context.world.is_root()) {
                std::ranges::for_each(measured.remarks, notice);
                if (path != named) {
                    std::cout << "with " << path << "\n";
                }
                if (auto const text = train::not_finite_text(measured); !text.empty()) {
                    notice(concat("warning: ", text));
                }
                auto const* const row = deck.task.kind == "regression" ? "target" : "class";
                std::cout << monitor::measured_text(measured, row, monitor::on_terminal())
                          << monitor::confusion_text(measured.confusion);
                if (told.worst > 0) {
                    print_worst(measured.worst, told.worst, measured.samples);
                }
                if (!told.worst_output.empty()) {
                    write_worst(measured, told.worst_output);
                }
                if (!told.outputs.empty()) {
                    std::cout << "the outputs are in " << told.outputs.string() << "\n";
                }
            }
            return ExitCode::ok;
        });
}

} // namespace lockstep::app
