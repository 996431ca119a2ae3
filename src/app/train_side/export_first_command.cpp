#include "base/notice.hpp"
#include "base/scratch_directory.hpp"
#include "base/text.hpp"
#include "checkpoint/store.hpp"
#include "comm/agree.hpp"
#include "lockstep/base/signals.hpp"
#include "lockstep/monitor/collective_command.hpp"
#include "lockstep/train/trainer.hpp"

#include <algorithm>
#include <iostream>

#include "../exported_weights.hpp"
#include "../output_file.hpp"
#include "build_info.hpp"
#include "commands.hpp"
#include "deck_on_all_ranks.hpp"

namespace lockstep::app {

namespace {

void require_one_rank(comm::Communicator const& world) {
    if (world.size() > 1) {
        throw Error(ExitCode::usage,
                    {concat("lockstep checkpoint export on ", world.size(), " ranks"),
                     "a model is exported by one rank", "Start the command without mpirun"});
    }
}

/// The first checkpoint of a run of the deck.
///
/// Collective  over `world`, of one rank
checkpoint::VerifiedFile first_checkpoint(comm::Communicator const& world, config::Deck deck,
                                          std::filesystem::path const& directory) {
    deck.run.directory = directory.string();
    deck.run.replicas = std::max<std::int64_t>(deck.run.replicas, 1);
    deck.checkpoint.resume = "none";
    deck.checkpoint.local.clear();
    SignalRequests const signals;
    train::Trainer(world, {.deck = std::move(deck), .version = build::version}, signals)
        .save_checkpoint();
    return checkpoint::VerifiedFile(
        checkpoint::Store(directory / "checkpoints", 1).list().at(0).path);
}

} // namespace

/// Words of `lockstep checkpoint export`, which it has looked at: DECK, OUT, format, type, and keys
/// of the deck.
ExitCode export_first_command(Invocation const& invocation) {
    return monitor::run_collectively(
        invocation.argc, invocation.argv, [&](monitor::CommandContext& context) {
            auto const& world = context.world;
            auto const& words = invocation.arguments;
            comm::agree(world, "reading the command line", [&] { require_one_rank(world); });
            Words const own{.positions = {words.at(0)},
                            .keys = std::vector(words.begin() + 4, words.end())};
            auto const deck = read_deck(world, own, 1).deck;
            context.session.bind_device(train::device_of_rank(world, deck.run));
            ScratchDirectory const scratch;
            comm::agree(world, "looking at the output",
                        [&] { require_not_named(words[1], deck, DeckFrom::user); });
            auto const first = first_checkpoint(world, deck, scratch.path() / "run");
            comm::agree(world, "exporting the model", [&] {
                auto const weights = checkpoint::open_weights(first);
                if (words[2] == "safetensors") {
                    export_weights(words[1], *weights, words[3]);
                } else {
                    checkpoint::write_model(words[1], *weights);
                }
                std::cout << words[1] << ": the model of " << words[0]
                          << ", with the weights that its run begins with\n";
            });
            return ExitCode::ok;
        });
}

} // namespace lockstep::app
