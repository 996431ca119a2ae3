#include "deck_on_all_ranks.hpp"

#include "lockstep/base/error.hpp"
#include "lockstep/base/text.hpp"
#include "lockstep/comm/agree.hpp"
#include "lockstep/comm/collectives.hpp"
#include "lockstep/config/deck_source.hpp"

#include <filesystem>

namespace lockstep::app {

DeckArguments read_deck(comm::Communicator const& world, std::vector<std::string> const& arguments,
                        std::size_t decks) {
    DeckArguments result;
    std::string packed;
    std::string name;
    comm::agree(world, "reading the deck", [&] {
        config::DeckSource source;
        auto const others = config::DeckSource().take_options(arguments);
        for (auto const& argument : others) {
            bool const is_deck =
                !argument.starts_with("--") && (decks == 0 || (name.empty() && decks == 1));
            if (decks == 0 && !is_deck) {
                throw Error(ExitCode::usage, {concat("unknown option ", argument),
                                              "keys of the deck are --section.key VALUE",
                                              "The command's --help lists all"});
            }
            if (!is_deck) {
                result.others.push_back(argument);
                continue;
            }
            if (world.is_root()) {
                source.read(argument);
            }
            name = std::filesystem::path(argument).stem().string();
        }
        if (name.empty()) {
            throw Error(ExitCode::usage, {"no deck was named", "there is nothing to do",
                                          "Name one, such as inputs/fashion_mnist.ini"});
        }
        source.take_options(arguments); // the command line wins
        packed = source.packed();
    });
    comm::broadcast_text(world, packed);
    comm::agree(world, "reading the deck", [&] {
        result.deck = config::DeckSource::unpacked(packed).parse();
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

} // namespace lockstep::app
