#include "progress.hpp"

#include "base/text.hpp"

namespace lockstep::train {

void Progress::begin_epoch() {
    epoch_figures.clear();
    epoch_loss_sum = 0;
    epoch_weight = 0;
    epoch_counts.clear();
}

void Progress::write_to(checkpoint::Record& record) const {
    record.integers["step"] = step;
    record.integers["best_step"] = best_step;
    record.integers["owes_validation"] = owes_validation ? 1 : 0;
    record.reals["epoch_loss_sum"] = epoch_loss_sum;
    record.reals["epoch_weight"] = epoch_weight;
    record.reals["best"] = best;
    for (std::size_t i = 0; i < epoch_figures.size(); ++i) {
        record.reals[concat("epoch_figure_", i)] = epoch_figures[i];
    }
    for (std::size_t i = 0; i < epoch_counts.size(); ++i) {
        record.integers[concat("epoch_count_", i)] = epoch_counts[i];
    }
    record.history = history;
}

Progress Progress::read_from(checkpoint::Record const& record) {
    Progress progress;
    progress.step = integer_of(record, "step");
    progress.best_step = integer_of(record, "best_step");
    progress.owes_validation = integer_of(record, "owes_validation", 0) != 0;
    progress.epoch_loss_sum = real_of(record, "epoch_loss_sum");
    progress.epoch_weight = real_of(record, "epoch_weight");
    progress.best = real_of(record, "best");
    for (std::size_t i = 0; record.reals.contains(concat("epoch_figure_", i)); ++i) {
        progress.epoch_figures.push_back(record.reals.at(concat("epoch_figure_", i)));
    }
    for (std::size_t i = 0; record.integers.contains(concat("epoch_count_", i)); ++i) {
        progress.epoch_counts.push_back(record.integers.at(concat("epoch_count_", i)));
    }
    progress.history = record.history;
    return progress;
}

} // namespace lockstep::train
