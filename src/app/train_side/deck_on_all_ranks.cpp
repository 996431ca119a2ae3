#include "deck_on_all_ranks.hpp"

#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "config/idle_keys.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/config/deck_source.hpp"
#include "lockstep/nn/registry.hpp"
#include "lockstep/task/task.hpp"
#include "lockstep/train/trainer.hpp"
#include "monitor/root_cause.hpp"
#include "monitor/watchdog.hpp"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>

#include "../agreed_words.hpp"

namespace lockstep::app {

namespace {

/// "model cnn", where `kinds` has such a kind with the key, and the one that is named lacks it.
/// Keys of a plug-in are not known before it is loaded: nothing is another's then.
template <class Kind>
std::string owner_of(std::string const& what, std::vector<Kind> const& kinds,
                     std::string const& named, std::string const& key) {
    auto const has = [&](Kind const& kind) {
        return std::any_of(kind.keys.begin(), kind.keys.end(),
                           [&](config::OwnKey const& own) { return own.name == key; });
    };
    auto const chosen = std::find_if(kinds.begin(), kinds.end(),
                                     [&](Kind const& kind) { return kind.name == named; });
    auto const owner = std::find_if(kinds.begin(), kinds.end(), has);
    bool const anothers = chosen != kinds.end() && !has(*chosen) && owner != kinds.end();
    return anothers ? concat(what, " ", owner->name) : "";
}

/// Whoever names the run may expect its default directory, runs/NAME.
std::string of_name_alone(config::DeckSource const& source) {
    auto const name = source.values().find("run.name");
    auto const directory = source.values().find("run.directory");
    if (name == source.values().end() || directory == source.values().end() ||
        directory->second.value.empty() || name->second.layer <= directory->second.layer) {
        return "";
    }
    return concat("run.name = ", name->second.value, " (", name->second.origin,
                  ") does not change the directory, which is run.directory = ",
                  directory->second.value, " (", directory->second.origin, ")");
}

} // namespace

std::vector<std::string> drop_keys_of_others(config::DeckSource& source) {
    auto ignored = source.drop_keys_of_another(
        "model.name", [](std::string const& named, std::string const& key) {
            return owner_of("model", nn::model_kinds(), named, key);
        });
    auto const of_tasks = source.drop_keys_of_another(
        "task.kind", [](std::string const& named, std::string const& key) {
            return owner_of("task", task::task_kinds(), named, key);
        });
    ignored.insert(ignored.end(), of_tasks.begin(), of_tasks.end());
    return ignored;
}

DeckArguments read_deck(comm::Communicator const& world, Words const& words, std::size_t decks) {
    DeckArguments result;
    std::string packed;
    std::string name;
    std::vector<std::string> files;
    comm::agree(world, "reading the deck", [&] {
        config::DeckSource source;
        for (auto const& word : words.positions) {
            if (decks > 0 && files.size() == decks) {
                result.others.push_back(word);
                continue;
            }
            if (world.is_root()) {
                source.read(word);
            }
            name = std::filesystem::path(word).stem().string();
            files.push_back(word);
        }
        if (files.empty()) {
            throw Error(ExitCode::usage, {"no deck was named", "this command needs a deck",
                                          "Name a deck, such as inputs/fashion_mnist.ini"});
        }
        source.take_options(words.keys); // the command line wins
        packed = source.packed();
    });
    comm::broadcast_text(world, packed);
    comm::agree(world, "reading the deck", [&] {
        auto source = config::DeckSource::unpacked(packed);
        result.places = source.places(joined(files, ", "));
        auto ignored = drop_keys_of_others(source);
        result.deck = source.parse();
        std::ranges::move(config::ignored_values(source, result.deck), std::back_inserter(ignored));
        if (auto sentence = of_name_alone(source); !sentence.empty()) {
            ignored.push_back(std::move(sentence));
        }
        if (world.is_root()) {
            for (auto const& sentence : ignored) {
                std::cerr << "lockstep: " << sentence << "\n";
            }
        }
        auto& run = result.deck.run;
        if (run.name.empty()) {
            run.name = name;
        }
        if (run.directory.empty()) {
            run.directory = (std::filesystem::path("runs") / run.name).string();
        }
    });
    return result;
}

DeckArguments begin_with_deck(monitor::CommandContext& context, Options const& options,
                              Invocation const& invocation, std::size_t decks) {
    auto const words = agreed_words(context.world, options, invocation.arguments);
    auto result = read_deck(context.world, words, decks);
    auto const& deck = result.deck;
    context.root_cause.set_places(result.places);
    context.watchdog.set_patience(static_cast<double>(deck.communication.timeout_seconds));
    context.session.bind_device(train::device_of_rank(context.world, deck.run));
    return result;
}

} // namespace lockstep::app
