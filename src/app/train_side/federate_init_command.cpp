#include "base/notice.hpp"
#include "base/text.hpp"
#include "batches/model_facts.hpp"
#include "checkpoint/store.hpp"
#include "comm/agree.hpp"
#include "federate/deck_files.hpp"
#include "federate/federation.hpp"
#include "federate/sound_charter.hpp"
#include "lockstep/monitor/collective_command.hpp"
#include "lockstep/task/task.hpp"
#include "lockstep/train/trainer.hpp"
#include "model_files/model_changes.hpp"
#include "monitor/watchdog.hpp"
#include "nn/named_code.hpp"
#include "nn/program_records.hpp"
#include "sites/founding.hpp"
#include "sites/take_part.hpp"

#include <algorithm>
#include <iostream>
#include <optional>

#include "../agreed_words.hpp"
#include "../federate_options.hpp"
#include "build_info.hpp"
#include "commands.hpp"
#include "deck_on_all_ranks.hpp"

namespace lockstep::app {

namespace {

/// What the coordinator's data say of themselves; nothing where it has none.
std::optional<data::Facts> facts_of_data(config::Deck const& deck) {
    try {
        return trimmed(deck.data.train).empty()
                   ? std::nullopt
                   : std::optional(sites::open_training_set(deck).facts());
    } catch (Error const& error) {
        if (error.code() != ExitCode::no_input) {
            throw;
        }
        return std::nullopt;
    }
}

/// All sites are to read their data alike. What the weights do not know, the data of the
/// coordinator tell.
///
/// Throws   Error 65 for data that the sites' rounds would refuse
/// Returns  a line for the user; empty: nothing to tell
std::string take_facts_of_data(config::Deck const& deck, federate::ModelVector& first,
                               std::string const& weights) {
    if (task::is_played(deck.task)) {
        return {};
    }
    auto const known = train::facts_of(first.record(), weights);
    if (!known.target_mean.empty()) {
        throw Error(ExitCode::usage,
                    {concat("--weights ", weights),
                     "its model was trained with data.normalise-targets, which cannot be used in a "
                     "federation",
                     "Name a model that was trained without data.normalise-targets"});
    }
    auto const whose = train::data_of(weights);
    auto const named = concat("data.train = ", deck.data.train);
    auto const own = facts_of_data(deck);
    if (!own) {
        return known.scale_known ? ""
                                 : concat("warning: ", weights,
                                          " does not say how its inputs were normalized, so each "
                                          "site uses the mean and std of its own data. If they "
                                          "differ, name data.train");
    }
    if (auto const differs = data::difference(*own, known, whose); !differs.empty()) {
        throw train::does_not_fit(named, whose, differs);
    }
    if (known.scale_known) {
        return data::other_scale(*own, named, known, whose);
    }
    train::note_facts(first.record(), data::completed(*own, known));
    return concat(weights,
                  " does not say how its inputs were normalized, so all sites use the mean "
                  "and std of ",
                  named);
}

/// Both name the first global model.
void require_one_name(std::string const& weights, config::Deck const& deck) {
    if (!weights.empty() && !deck.model.weights.empty()) {
        throw Error(
            ExitCode::usage,
            {concat("--weights ", weights, " and model.weights = ", deck.model.weights),
             "a federation has only one first global model",
             "Leave out --weights, or set model.weights to nothing (--model.weights \"\")"});
    }
}

} // namespace

ExitCode federate_init_command(Invocation const& invocation) {
    SignalRequests const signals;
    return monitor::run_collectively(
        invocation.argc, invocation.argv, [&](monitor::CommandContext& context) {
            auto const& world = context.world;
            FederateInitTold told;
            auto words = agreed_words(world, federate_init_options(told), invocation.arguments);
            std::filesystem::path const directory = words.positions[0];
            comm::agree(world, "reading the command line", [&] {
                federate::require_cryptography();
                settle_charter(told.charter, told.secure, told.charter.min_sites);
                federate::require_key_outside(told.key, directory);
                if (world.is_root() && std::filesystem::exists(directory / "charter.h5")) {
                    throw Error(ExitCode::cannot_create,
                                {concat(directory.string(), " already holds a federation"),
                                 "sites could not tell the two federations apart",
                                 "Name another directory"});
                }
            });
            auto deck = read_deck(world, {{words.positions[1]}, words.keys}, 0).deck;
            context.watchdog.set_patience(static_cast<double>(deck.communication.timeout_seconds));
            context.session.bind_device(train::device_of_rank(world, deck.run));
            deck.run.replicas = std::max<std::int64_t>(deck.run.replicas, 1);
            comm::agree(world, "reading the deck", [&] { require_one_name(told.weights, deck); });
            auto first = told.weights.empty()
                             ? sites::first_weights(world, deck, directory / "first-weights",
                                                    signals, build::version)
                             : federate::ModelVector();
            comm::agree(world, "starting the federation", [&] {
                if (!world.is_root()) {
                    return;
                }
                if (!told.weights.empty()) {
                    first = federate::ModelVector::read(told.weights);
                    for (auto const& line : {take_facts_of_data(deck, first, told.weights),
                                             train::warning_of_model_changes(
                                                 deck, checkpoint::VerifiedFile(told.weights))}) {
                        if (!line.empty()) {
                            notice(line);
                        }
                    }
                }
                auto charter = sites::charter_for(told.charter, deck, first);
                charter.id = hex_text(federate::Secret::random().bytes()).substr(0, 32);
                auto const key =
                    federate::PrivateKey::open_or_make(told.key, federate::coordinator_name);
                auto const federation = federate::Federation::found(directory, charter, first, key);
                std::cout << "federation " << charter.id << " in " << directory.string()
                          << ": a model of "
                          << count_text(static_cast<std::int64_t>(first.values.size()))
                          << " numbers, " << charter.rounds << " rounds\n"
                          << "the coordinator's fingerprint is\n  "
                          << hex_text(federation.coordinator()) << "\n";
            });
            return ExitCode::ok;
        });
}

} // namespace lockstep::app
