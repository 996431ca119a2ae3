#include "federate/sound_charter.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/config/deck_source.hpp"

#include <functional>

namespace lockstep::federate {

namespace {

/// A mean of models is neither sparse nor smaller, and its zero points are no whole numbers.
void require_fit_for_mean(config::Deck const& deck) {
    if (deck.prune.pattern != "none") {
        throw Error(ExitCode::usage,
                    {concat("prune.pattern = ", deck.prune.pattern,
                            " cannot be used in a federation's deck"),
                     "the global model is a mean of the sites' models, which would not be pruned",
                     "Leave prune.pattern out, and prune the global model in a training of its "
                     "own (model.weights)"});
    }
    if (deck.quantise.aware) {
        throw Error(ExitCode::usage,
                    {"quantise.aware cannot be used in a federation's deck",
                     "the sites' quantisation scales and zero points cannot be averaged",
                     "Leave quantise.aware out, and quantise the global model (lockstep checkpoint "
                     "quantise)"});
    }
}

/// A site's change is taken from the whole model between two rounds.
void require_whole_model(config::Deck const& deck) {
    if (deck.optimizer.update == "fully-sharded") {
        throw Error(ExitCode::usage,
                    {"optimizer.update = fully-sharded cannot be used in a federation's deck",
                     "a site sends the change of all parameters after each round",
                     "Set optimizer.update = sharded-gradients"});
    }
}

/// Adapters start over in each round, and a mean of merged weights has none.
void require_no_adapters(config::Deck const& deck) {
    if (deck.model.lora_rank > 0) {
        throw Error(ExitCode::usage,
                    {concat("model.lora-rank = ", deck.model.lora_rank,
                            " cannot be used in a federation's deck"),
                     "each round is a separate run with new adapters, and the global model is a "
                     "mean of the sites' merged weights, whose change has no low rank",
                     "Set model.lora-rank = 0, and name the parameters to keep in "
                     "optimizer.freeze"});
    }
}

/// Each round is a training of its own, in which early stopping and plateaus would start over.
void require_fixed_rounds(config::Deck const& deck) {
    bool const stops = deck.train.patience > 0;
    if (stops || deck.schedule.name == "plateau") {
        throw Error(ExitCode::usage,
                    {concat(stops ? concat("train.patience = ", deck.train.patience)
                                  : std::string("schedule.name = plateau"),
                            " cannot be used in a federation's deck"),
                     "each round is a separate training, whose validations say nothing of the "
                     "rounds before",
                     stops ? "Set train.patience = 0, and choose the number of rounds with --rounds"
                           : "Choose another schedule.name"});
    }
}

/// A round is a run of its own, and noise is added to the change of all parameters.
void require_fit_for_freezing(Charter const& charter, config::Optimizer const& optimizer) {
    if (optimizer.freeze != "none" && (charter.is_private() || optimizer.thaw_epoch > 0)) {
        bool const thaws = optimizer.thaw_epoch > 0;
        throw Error(ExitCode::usage,
                    {thaws ? "optimizer.thaw-epoch cannot be used in a federation's deck"
                           : "optimizer.freeze cannot be combined with --noise",
                     thaws ? "each round is a separate run, which would begin with frozen "
                             "parameters again"
                           : "the noise of a round would change frozen parameters, too",
                     thaws ? "Set optimizer.thaw-epoch = 0" : "Set optimizer.freeze = none"});
    }
}

/// A site's own mean and deviation would give its model outputs of other units.
void require_plain_targets(config::Deck const& deck) {
    if (deck.data.normalise_targets) {
        throw Error(ExitCode::usage,
                    {"data.normalise-targets cannot be used in a federation's deck",
                     "the targets of all sites have no mean and standard deviation that a site "
                     "knows",
                     "Set data.normalise-targets = false, and let all sites store targets that "
                     "are scaled by the same values"});
    }
}

void require_fit_for_controls(config::Deck const& deck) {
    auto const misfit =
        deck.optimizer.name != "sgd"   ? concat("optimizer.name = ", deck.optimizer.name)
        : deck.optimizer.momentum != 0 ? concat("optimizer.momentum = ", deck.optimizer.momentum)
        : deck.schedule.name != "constant" ? concat("schedule.name = ", deck.schedule.name)
        : deck.schedule.warmup_steps != 0
            ? concat("schedule.warmup-steps = ", deck.schedule.warmup_steps)
        : deck.schedule.warmup_epochs != 0
            ? concat("schedule.warmup-epochs = ", deck.schedule.warmup_epochs)
        : deck.optimizer.groups != "none" ? concat("optimizer.groups = ", deck.optimizer.groups)
        : deck.optimizer.layer_decay != 1
            ? concat("optimizer.layer-decay = ", deck.optimizer.layer_decay)
        : deck.precision.compute == "fp16" ? std::string("precision.compute = fp16")
                                           : std::string();
    if (!misfit.empty()) {
        throw Error(ExitCode::usage,
                    {concat("--strategy scaffold cannot be used with ", misfit),
                     "scaffold computes control variates from the change of the weights, and these "
                     "are correct only for plain SGD",
                     "Set optimizer.name = sgd, optimizer.momentum = 0, schedule.name = constant, "
                     "schedule.warmup-steps = 0 and schedule.warmup-epochs = 0, and do not use "
                     "optimizer.groups, optimizer.layer-decay or precision.compute = fp16"});
    }
}

/// Throws  Error 65 for each Error of `check`
void require_received(std::function<void()> const& check) {
    try {
        check();
    } catch (Error const& error) {
        throw Error(
            ExitCode::data,
            {concat("the federation's charter is not sound: ", error.text().what), error.text().why,
             "Take no part in this federation, and ask its coordinator to start another one "
             "with lockstep federate init, which refuses such a charter"});
    }
}

} // namespace

void require_fit(Charter const& charter, config::Deck const& deck) {
    if (charter.has_controls()) {
        require_fit_for_controls(deck);
    }
    require_fit_for_mean(deck);
    require_whole_model(deck);
    require_no_adapters(deck);
    require_fixed_rounds(deck);
    require_fit_for_freezing(charter, deck.optimizer);
    require_plain_targets(deck);
    if (deck.privacy.is_on()) {
        throw Error(ExitCode::usage,
                    {"privacy.noise cannot be used in a federation's deck",
                     "each round is a separate run, so epsilon would count only one round",
                     "Leave privacy.noise out and use --noise and --clip, which hide the data of "
                     "whole sites"});
    }
}

void require_fit_for_noise(Charter const& charter, ModelVector const& model) {
    auto const statistic = charter.is_private() ? model.statistic() : std::string();
    if (!statistic.empty()) {
        throw Error(ExitCode::usage,
                    {concat("--noise cannot be combined with the model's buffer ", statistic),
                     "batch norm stores means and variances of training samples: noise would make "
                     "variances negative, and without noise they would not be private",
                     "Set model.batch-norm = false, or use a model with another norm, such as "
                     "group norm or layer norm"});
    }
}

void require_sound(Charter const& received) {
    require_received([&] {
        config::DeckSource source;
        source.read_printed(received.deck, "the federation's deck");
        received.require_sound();
        require_fit(received, source.parse());
    });
}

void require_fit_for_noise(Federation const& received) {
    auto const& charter = received.charter();
    if (charter.is_private()) {
        auto const first = received.model_before(1);
        require_received([&] { require_fit_for_noise(charter, first); });
    }
}

} // namespace lockstep::federate
