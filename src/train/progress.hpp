#pragma once

#include "checkpoint/record.hpp"
#include "optimizer/plateau.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace lockstep::train {

/// The small state of a run, besides parameters, buffers and optimizer: all else that changes from
/// step to step, the same on all ranks.
struct Progress {
    std::int64_t step = 0;     ///< steps done
    double epoch_loss_sum = 0; ///< over the epoch so far
    double epoch_weight = 0;
    std::vector<double> epoch_figures;      ///< the task's
    std::vector<std::int64_t> epoch_counts; ///< the task's
    double best = 0;
    std::int64_t best_step = -1;   ///< -1: nothing measured yet
    bool owes_validation = false;  ///< was asked to leave before this step's validation was done
    Improvement early{};           ///< of early stopping
    std::int64_t early_length = 0; ///< total steps of the run at the last validation that counted
    PlateauState plateau{};
    /// By host: the last step in which a check found that it computes right, or before its first.
    std::map<std::string, std::int64_t> sound_hosts;
    std::string history; ///< every epoch and validation, one JSON object a line

    void remember(std::string const& line) { history += line + "\n"; }
    /// Resets the epoch's sums.
    void begin_epoch();
    /// Forgets the best values so far, which are those of another metric or of a larger model.
    void forget_best();

    /// Conversion to and from a checkpoint's record.
    void write_to(checkpoint::Record& record) const;
    static Progress read_from(checkpoint::Record const& record);
};

} // namespace lockstep::train
