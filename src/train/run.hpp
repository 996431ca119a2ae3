#pragma once

#include "lockstep/base/clock.hpp"
#include "lockstep/train/engine.hpp"
#include "lockstep/train/evaluate.hpp"
#include "lockstep/train/progress.hpp"
#include "lockstep/train/schedule.hpp"
#include "lockstep/train/stragglers.hpp"

#include <optional>

#include "opening.hpp"

namespace lockstep::train {

/// One attempt of a run, from its opening to its end. Everything collective is called in the same
/// order on all ranks; only rank 0 has observers.
class Run {
  public:
    Run(comm::Communicator const& world, Order const& order, SignalRequests const& signals);

    Ended execute();

  private:
    std::vector<comm::TreeNode> place_replicas();
    void restore();
    void announce();
    void loop();
    data::Loader::Request requests() const;
    StepOutcome one_step(data::Loader& loader);
    void account(StepOutcome const& outcome, double step_s);
    void after_step(StepOutcome const& outcome);
    void end_epoch();
    void validate();
    void save_best(Measured& measured);
    void save_checkpoint();
    void test();
    Measured measure(data::Dataset const& dataset, std::string const& set);
    checkpoint::Record record() const;
    void tell(Event const& event);
    void remember(std::string const& line);
    bool done() const { return progress_.step >= total_steps_; }
    double epochs_done() const;
    std::string best_metric() const;

    comm::Communicator const& world_;
    Order const& order_;
    SignalRequests const& signals_;
    comm::Topology topology_;
    OpenedRun opened_;
    config::Deck& deck_;
    torch::Device device_ = torch::kCPU;
    Workload work_;
    std::unique_ptr<Engine> engine_;
    std::optional<data::TrainPlan> plan_;
    std::optional<Schedule> schedule_;
    checkpoint::Store store_;
    std::vector<std::unique_ptr<Observer>> observers_;
    std::int64_t total_steps_ = 0;

    Progress progress_;
    Ended ended_;
    Stopwatch attempt_watch_;
    Stopwatch checkpoint_watch_;
    Stopwatch epoch_watch_;
    std::int64_t epoch_samples_ = 0; ///< learnt in this attempt
    std::int64_t saved_step_ = -1;   ///< of the newest checkpoint
    std::int64_t samples_done_ = 0;
    double training_s_ = 0;
    double communication_s_ = 0; ///< exposed
    double imbalance_s_ = 0;
    Stragglers stragglers_;
    std::string attempt_;
    std::string remark_; ///< on what the deck asks for and does not get
};

} // namespace lockstep::train
