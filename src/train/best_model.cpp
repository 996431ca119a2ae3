#include "best_model.hpp"

#include "base/text.hpp"
#include "checkpoint/weights.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "lockstep/model_files/load_weights.hpp"

#include <cmath>
#include <exception>
#include <tuple>
#include <utility>

#include "disk_failure.hpp"

namespace lockstep::train {

BestModel::BestModel(Dependencies const& parts)
    : parts_(parts), file_(std::filesystem::path(parts.facts.deck().run.directory) / "best.h5") {}

bool BestModel::is_better(double value) const {
    auto const& progress = parts_.progress;
    bool const more = parts_.work.best_metric.more_is_better;
    bool const better =
        progress.best_step < 0 || (more ? value > progress.best : value < progress.best);
    return better && std::isfinite(value);
}

double BestModel::value_of(Measured const& measured) const {
    auto const& metric = parts_.work.best_metric.name;
    return metric == "loss" ? measured.loss : measured.metrics.at(metric);
}

bool BestModel::offer(Measured const& measured) {
    double const value = value_of(measured);
    auto& progress = parts_.progress;
    never_finite_ = std::isfinite(value) ? "" : parts_.work.best_metric.name;
    if (!is_better(value)) {
        return false;
    }
    auto const before = std::pair{progress.best, progress.best_step};
    progress.best = value;
    progress.best_step = progress.step;
    parts_.checkpoints.settle(); // HDF5 is for one thread at a time
    parts_.engine->whole();
    auto const& world = parts_.facts.world;
    try {
        comm::agree(world, "writing the best model", [&] {
            if (world.is_root()) {
                parts_.facts.setup.directory->require_ours();
                parts_.engine->state().write_model(file_, parts_.state.record());
            }
        });
    } catch (AgreedError const& failure) {
        if (!of_the_disk(failure)) {
            throw;
        }
        std::tie(progress.best, progress.best_step) = before;
        parts_.observers.tell(
            Remark{concat("warning: the best model was not written, so best.h5 stays as it was: ",
                          failure.cause(), ": ", failure.what())});
        return false;
    }
    known_ = true;
    return true;
}

std::string BestModel::never_finite() const {
    return parts_.progress.best_step < 0 ? never_finite_ : "";
}

std::string BestModel::fault_of(checkpoint::VerifiedFile const& file) const {
    auto const wanted = parts_.progress.best_step;
    auto const stored = checkpoint::open_weights(file);
    if (stored->quantised()) {
        return "is a quantised model";
    }
    auto const step = integer_of(stored->record(), "step", wanted);
    return step == wanted ? "" : concat("is the model of step ", step, ", not of step ", wanted);
}

bool BestModel::is_kept() const {
    if (parts_.progress.best_step < 0 || !parts_.facts.world.is_root()) {
        return false;
    }
    try {
        return std::filesystem::exists(file_) &&
               (known_ || fault_of(checkpoint::VerifiedFile(file_)).empty());
    } catch (std::exception const&) { // damaged, or it cannot be read
        return false;
    }
}

bool BestModel::load() {
    auto const& world = parts_.facts.world;
    if (parts_.progress.best_step < 0) {
        return false;
    }
    std::string fault = "is gone";
    if (comm::all_reduce(world, world.is_root() && std::filesystem::exists(file_) ? 1 : 0,
                         comm::Reduce::maximum) != 0) {
        auto const best = checkpoint::verify_together(world, file_);
        parts_.engine->whole(); // all of them are overwritten
        comm::agree(world, "reading the best model", [&] {
            fault = known_ ? "" : fault_of(best);
            if (fault.empty()) {
                load_weights(*parts_.work.model, best);
            }
        });
        if (fault.empty()) {
            parts_.engine->restored();
        }
    }
    known_ = fault.empty();
    if (!known_) {
        parts_.observers.tell(
            Remark{concat("warning: ", file_.string(), " ", fault,
                          ": the test measures the last step's model, not the best one")});
    }
    return known_;
}

} // namespace lockstep::train
