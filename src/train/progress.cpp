#include "progress.hpp"

#include "base/text.hpp"

#include <utility>

namespace lockstep::train {

namespace {

constexpr char const* sound_note = "sound_hosts";

/// Writes what differs from a new one, so that runs without the feature keep their records.
void write(checkpoint::Record& record, std::string const& name, Improvement const& improvement) {
    if (improvement.best) {
        record.reals[concat(name, "_best")] = *improvement.best;
    }
    if (improvement.without > 0) {
        record.integers[concat(name, "_without")] = improvement.without;
    }
}

Improvement read(checkpoint::Record const& record, std::string const& name) {
    auto const best = record.reals.find(concat(name, "_best"));
    return {.best = best == record.reals.end() ? std::nullopt : std::optional(best->second),
            .without = integer_of(record, concat(name, "_without"), 0)};
}

} // namespace

void Progress::forget_best() {
    best_step = -1;
    early = {};
    plateau.metric = {};
}

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
    write(record, "early", early);
    write(record, "plateau", plateau.metric);
    for (auto const& [name, value] :
         {std::pair("early_length", early_length), std::pair("plateau_cooldown", plateau.cooldown),
          std::pair("plateau_reductions", plateau.reductions)}) {
        if (value > 0) {
            record.integers[name] = value;
        }
    }
    for (std::size_t i = 0; i < epoch_figures.size(); ++i) {
        record.reals[concat("epoch_figure_", i)] = epoch_figures[i];
    }
    for (std::size_t i = 0; i < epoch_counts.size(); ++i) {
        record.integers[concat("epoch_count_", i)] = epoch_counts[i];
    }
    std::vector<std::string> sound;
    for (auto const& [host, at] : sound_hosts) {
        sound.push_back(concat(host, "=", at));
    }
    if (!sound.empty()) {
        record.notes[sound_note] = joined(sound, " ");
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
    progress.early = read(record, "early");
    progress.early_length = integer_of(record, "early_length", 0);
    progress.plateau = {.metric = read(record, "plateau"),
                        .cooldown = integer_of(record, "plateau_cooldown", 0),
                        .reductions = integer_of(record, "plateau_reductions", 0)};
    for (std::size_t i = 0; record.reals.contains(concat("epoch_figure_", i)); ++i) {
        progress.epoch_figures.push_back(record.reals.at(concat("epoch_figure_", i)));
    }
    for (std::size_t i = 0; record.integers.contains(concat("epoch_count_", i)); ++i) {
        progress.epoch_counts.push_back(record.integers.at(concat("epoch_count_", i)));
    }
    auto const sound = record.notes.find(sound_note);
    for (auto const& each : split(sound == record.notes.end() ? "" : sound->second, ' ')) {
        auto const equals = each.find('=');
        if (auto const at = number_of<std::int64_t>(each.substr(equals + 1))) {
            progress.sound_hosts[each.substr(0, equals)] = *at;
        }
    }
    progress.history = record.history;
    return progress;
}

} // namespace lockstep::train
