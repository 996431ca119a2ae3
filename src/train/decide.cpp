#include "decide.hpp"

#include "base/host_facts.hpp"
#include "base/text.hpp"
#include "batches/outputs_format.hpp"
#include "checkpoint/reader.hpp"
#include "comm/replica_tree.hpp"
#include "device/device.hpp"
#include "device/precision.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/checkpoint/verify.hpp"
#include "lockstep/nn/registry.hpp"
#include "lockstep/task/task.hpp"
#include "model_files/moved_files.hpp"
#include "model_files/stored_deck.hpp"
#include "optimizer/optimizer.hpp"
#include "optimizer/schedule.hpp"

#include <algorithm>

namespace lockstep::train {

namespace {

/// The replicas of a new run: one on each rank, or each GPU of a process that is alone, or as many
/// on threads as this process has cores for.
std::int64_t replicas_of_new(config::Run const& run, int ranks) {
    auto const gpus = concurrent_devices(run, ranks).size();
    if (gpus > 0) {
        return static_cast<std::int64_t>(gpus);
    }
    return run.mode == "dp" ? std::max<std::int64_t>(usable_cores() / run.threads, 1) : ranks;
}

/// What does not depend on a checkpoint: the batch of a replica.
void settle_batch(config::Deck& deck) {
    auto& data = deck.data;
    if (data.global_batch == 0) {
        return;
    }
    if (data.global_batch % deck.run.replicas != 0) {
        throw Error(
            ExitCode::usage,
            {concat("data.global-batch = ", data.global_batch),
             concat("it cannot be divided evenly among the ", deck.run.replicas, " replicas"),
             concat("Set data.global-batch to ",
                    std::max<std::int64_t>(data.global_batch / deck.run.replicas, 1) *
                        deck.run.replicas,
                    ", or change run.replicas")});
    }
    data.batch = data.global_batch / deck.run.replicas;
}

} // namespace

void require_possible(config::Deck const& deck, int ranks) {
    task::require_known(deck.task);
    nn::require_known(deck.model);
    require_complete(deck.schedule);
    auto const& run = deck.run;
    if ((run.mode == "single" || run.mode == "dp") && ranks > 1) {
        throw Error(ExitCode::usage, {concat("run.mode = ", run.mode, " on ", ranks, " ranks"),
                                      "this mode runs on one rank only",
                                      "Set run.mode = auto, or start only one rank"});
    }
}

void settle_new(config::Deck& deck, int ranks) {
    if (deck.run.replicas == 0) {
        deck.run.replicas = replicas_of_new(deck.run, ranks);
    }
    comm::subtrees_of_ranks(static_cast<int>(deck.run.replicas), ranks);
    settle_batch(deck);
}

std::optional<checkpoint::Found> found_for(comm::Communicator const& world,
                                           config::Deck const& deck,
                                           std::filesystem::path const& local, bool requeued) {
    auto const& resume = deck.checkpoint.resume;
    bool const automatic = resume == "auto";
    if (automatic || requeued) {
        checkpoint::Store const store(std::filesystem::path(deck.run.directory) / "checkpoints",
                                      static_cast<int>(deck.checkpoint.keep), {}, local);
        auto found = store.newest_good(world);
        if (automatic || found) {
            return found;
        }
    }
    return resume == "none" ? std::nullopt
                            : std::optional(checkpoint::Found{
                                  0, checkpoint::verify_together(world, resume), {}});
}

Decided decide(config::Deck deck, std::optional<checkpoint::Found> const& found, int ranks,
               bool force) {
    Decided decided;
    if (found) {
        auto const reader = checkpoint::reader_of(*found);
        if (reader->record().integers.contains(hash_of_outputs)) {
            throw checkpoint::not_a_checkpoint(
                found->file.path(), "is a file of outputs, and not the state of a run",
                "To learn from these outputs, set distill.outputs to this file");
        }
        auto before = stored_deck(reader->record(), found->file.path());
        before.precision.memory_format = memory_format(before.precision);
        if (deck.run.replicas == 0) {
            deck.run.replicas = before.run.replicas;
        }
        auto comparable = deck;
        settle_batch(comparable);
        comparable.precision.memory_format = memory_format(deck.precision);
        if (!deck.privacy.is_on() && !before.privacy.is_on()) {
            // Otherwise the noise depends on the deck as it is, with the names of files.
            before = with_places_of(before, comparable, keys_of_hashed_files(reader->record()));
        }
        decided.forced = config::forbidden_changes(before, comparable);
        if (!decided.forced.empty() && (deck.privacy.is_on() || before.privacy.is_on())) {
            throw Error(
                ExitCode::usage,
                {concat(
                     "the deck of run ", deck.run.directory,
                     " was changed, but epsilon holds only for an unchanged deck (privacy.noise)"),
                 joined(decided.forced, "; "),
                 "Change the deck back, or start over with --checkpoint.resume none"});
        }
        decided.shares_state = share_state(before.optimizer.name, deck.optimizer.name);
        if (!decided.forced.empty() && !force) {
            throw Error(ExitCode::usage,
                        {concat("the deck of run ", deck.run.directory, " was changed"),
                         joined(decided.forced, "; "),
                         "Change the deck back, allow the change with --force, or start over with "
                         "--checkpoint.resume none"});
        }
    }
    settle_new(deck, ranks);
    decided.deck = std::move(deck);
    return decided;
}

} // namespace lockstep::train
