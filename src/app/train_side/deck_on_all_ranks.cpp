#include "deck_on_all_ranks.hpp"

#include "base/notice.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "config/deck_text.hpp"
#include "config/idle_keys.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/config/deck_source.hpp"
#include "lockstep/train/trainer.hpp"
#include "model_files/keys_of_others.hpp"
#include "monitor/root_cause.hpp"
#include "monitor/watchdog.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "../agreed_words.hpp"

namespace lockstep::app {

namespace {

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
        auto ignored = train::drop_keys_of_others(source);
        result.deck = source.parse();
        std::ranges::move(config::ignored_values(source, result.deck), std::back_inserter(ignored));
        if (auto sentence = of_name_alone(source); !sentence.empty()) {
            ignored.push_back(std::move(sentence));
        }
        if (world.is_root()) {
            std::ranges::for_each(ignored, notice);
        }
        auto& run = result.deck.run;
        if (run.name.empty()) {
            config::require_plain("run.name", name, "the deck's name");
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
