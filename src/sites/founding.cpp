#include "sites/founding.hpp"

#include "base/text.hpp"
#include "batches/model_facts.hpp"
#include "checkpoint/store.hpp"
#include "comm/agree.hpp"
#include "federate/deck_files.hpp"
#include "federate/sound_charter.hpp"
#include "lockstep/task/task.hpp"
#include "lockstep/train/trainer.hpp"
#include "nn/named_code.hpp"
#include "nn/program_records.hpp"
#include "sites/take_part.hpp"

namespace lockstep::sites {

namespace {

/// The names of the classes, a line each: those of the first model or, where it knows none, of the
/// data, which a coordinator with --weights does not need.
std::string classes_of(config::Deck const& deck, federate::ModelVector const& first) {
    if (task::is_played(deck.task)) {
        return "";
    }
    auto const facts = train::facts_of(first.record(), "the first model");
    if (!facts.classes.empty() || deck.data.train.empty()) {
        return joined(facts.classes, "\n");
    }
    try {
        return joined(open_training_set(deck).declared_classes(), "\n");
    } catch (Error const& error) {
        if (error.code() != ExitCode::no_input) {
            throw;
        }
        return "";
    }
}

} // namespace

federate::ModelVector first_weights(comm::Communicator const& world, config::Deck deck,
                                    std::filesystem::path const& scratch,
                                    SignalRequests const& signals, std::string const& version) {
    deck.run.directory = scratch.string();
    {
        train::Trainer trainer(world, {.deck = deck, .version = version}, signals);
        trainer.save_checkpoint();
    }
    federate::ModelVector first;
    comm::agree(world, "reading the first weights", [&] {
        if (world.is_root()) {
            auto const checkpoints = checkpoint::Store(scratch / "checkpoints", 1).list();
            first = federate::ModelVector::read(checkpoints.at(0).path);
            std::filesystem::remove_all(scratch);
        }
    });
    return first;
}

federate::Charter charter_for(federate::Charter charter, config::Deck deck,
                              federate::ModelVector const& first) {
    deck.optimizer.proximal = charter.proximal;
    federate::require_fit(charter, deck);
    federate::require_fit_for_noise(charter, first);
    deck.model.weights.clear(); // of each round, the global model
    deck.model.weights_match = "strict";
    charter.deck = config::to_text(deck);
    charter.model = first.fingerprint();
    charter.classes = classes_of(deck, first);
    charter.files = federate::files_of(deck, nn::code_files(deck), nn::for_records);
    return charter;
}

} // namespace lockstep::sites
