#pragma once

#include "lockstep/config/deck.hpp"

#include <cstdint>
#include <string>

#include "progress.hpp"

namespace lockstep::train {

/// Whether a run is over because its metric has not improved in train.patience validations.
class EarlyStopping {
  public:
    explicit EarlyStopping(config::Deck const& deck);

    bool is_on() const noexcept { return patience_ > 0; }

    /// Takes in the metric that a validation has measured. Validations before weights are removed
    /// for the last time do not count: the run would end with too large a model.
    void take(Progress& progress, double value, bool more_is_better,
              std::int64_t total_steps) const;

    bool is_due(Progress const& progress) const {
        return is_on() && progress.early.without >= patience_;
    }

    /// Counts from 0 again where a run that was over continues: its length, `total_steps`, was
    /// raised, or it continues the checkpoint of another run (`foreign`).
    void resume(Progress& progress, std::int64_t total_steps, bool foreign) const;

    /// Why a run that is over is, for people.
    std::string text(std::string const& metric) const;

  private:
    std::int64_t patience_;
    double minimum_change_;
    std::int64_t last_removal_; ///< steps done before it; -1: the run removes no weights
};

/// Throws  Error 64 where the deck asks for early stopping or a plateau schedule, but the run has
/// no
///         validation set
void require_validation(config::Deck const& deck, bool validates);

/// What early stopping means for the length of a run, for people; empty where it is off.
std::string early_end_text(config::Deck const& deck, std::string const& metric);

} // namespace lockstep::train
