#include "train/early_stopping.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "optimizer/prune_schedule.hpp"

namespace lockstep::train {

EarlyStopping::EarlyStopping(config::Deck const& deck)
    : patience_(deck.train.patience), minimum_change_(deck.train.minimum_change),
      last_removal_(deck.prune.pattern == "none" ? -1 : PruneSchedule(deck.prune).last()) {}

void EarlyStopping::take(Progress& progress, double value, bool more_is_better,
                         std::int64_t total_steps) const {
    if (is_on() && progress.step > last_removal_) {
        progress.early.take(value, more_is_better, minimum_change_);
        progress.early_length = total_steps;
    }
}

void EarlyStopping::resume(Progress& progress, std::int64_t total_steps, bool foreign) const {
    if (is_due(progress) && (foreign || total_steps > progress.early_length)) {
        progress.early.without = 0;
    }
}

std::string EarlyStopping::text(std::string const& metric) const {
    return concat(metric, " has not improved in ", amount_of(patience_, "validation"),
                  " (train.patience)");
}

void require_validation(config::Deck const& deck, bool validates) {
    bool const stops = deck.train.patience > 0;
    if (validates || (!stops && deck.schedule.name != "plateau")) {
        return;
    }
    auto const key = stops ? concat("train.patience = ", deck.train.patience)
                           : std::string("schedule.name = plateau");
    throw Error(ExitCode::usage,
                {concat(key, " without a validation set"),
                 concat("the metric of the validations decides ",
                        stops ? "when the run ends" : "when the learning rate is reduced"),
                 concat("Set data.validation (for episodes, task.evaluation-episodes), or ",
                        stops ? "train.patience = 0" : "another schedule.name")});
}

std::string early_end_text(config::Deck const& deck, std::string const& metric) {
    return deck.train.patience > 0 ? concat("train.patience = ", deck.train.patience,
                                            " may end the run earlier, after ",
                                            amount_of(deck.train.patience, "validation"),
                                            " in a row in which ", metric, " does not improve")
                                   : "";
}

} // namespace lockstep::train
