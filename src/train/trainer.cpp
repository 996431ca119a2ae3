#include "lockstep/train/trainer.hpp"

#include "run.hpp"

namespace lockstep::train {

Trainer::Trainer(comm::Communicator const& world, RunOptions options, SignalRequests const& signals)
    : run_(Run::start(world, std::move(options), signals)) {}

Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;
Trainer::~Trainer() = default;

bool Trainer::train_epoch() {
    return run_->train_epoch();
}

std::optional<Measured> Trainer::validate() {
    return run_->measure_validation();
}

void Trainer::save_checkpoint() {
    run_->save_newest();
}

Ended Trainer::finish() {
    return run_->finish();
}

std::int64_t Trainer::step() const {
    return run_->step();
}

std::int64_t Trainer::pause_step() const {
    return run_->pause_step();
}

checkpoint::Snapshot Trainer::snapshot() {
    return run_->snapshot();
}

nn::Model& Trainer::model() {
    return run_->model();
}

Ended train(comm::Communicator const& world, RunOptions const& options,
            SignalRequests const& signals) {
    Trainer trainer(world, options, signals);
    while (trainer.train_epoch()) {
    }
    return trainer.finish();
}

} // namespace lockstep::train
