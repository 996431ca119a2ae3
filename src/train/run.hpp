#pragma once

#include "base/clock.hpp"
#include "checkpoint/background_writer.hpp"
#include "comm/topology.hpp"
#include "data/audit.hpp"
#include "lockstep/train/trainer.hpp"
#include "train/engine.hpp"
#include "train/pictures.hpp"
#include "train/schedule.hpp"
#include "train/stragglers.hpp"

#include <optional>
#include <vector>

#include "data_module.hpp"
#include "progress.hpp"
#include "run_setup.hpp"
#include "walltime.hpp"
#include "workload.hpp"

namespace lockstep::train {

/// What a run survives: the disk was full, or did not do what it was told.
bool of_the_disk(Error const& failure);

/// One attempt of a run, from its opening to its end. Everything collective is called in the same
/// order on all ranks; only rank 0 has observers.
class Run {
  public:
    /// Opens everything, resumes, and writes the first checkpoint of a run that begins.
    ///
    /// Collective  over `world`
    Run(comm::Communicator const& world, RunOptions options, SignalRequests const& signals);

    bool train_epoch();
    std::optional<Measured> measure_validation();
    void save_newest();
    Ended finish();

    std::int64_t step() const { return progress_.step; }
    nn::Model& model() { return *work_.model; }

  private:
    void begin();
    void open_batches();
    void take_step();
    template <class Work>
    auto settling(Work const& work);
    template <class Work>
    void training(Work const& work);
    std::vector<comm::TreeNode> place_replicas();
    void remark(std::string text);
    void restore();
    std::unique_ptr<data::Audit> audit_of_data() const;
    void make_audit();
    void settle_audit();
    void require_same_data(checkpoint::Reader const& reader);
    void require_same_code(checkpoint::Reader const& reader) const;
    void require_same_measure(checkpoint::Record const& record);
    void announce();
    void tell_start(std::vector<std::string> const& devices,
                    std::vector<std::string> const& memory) const;
    bool finished_before() const;
    StepOutcome one_step();
    void account(StepOutcome const& outcome, double step_s);
    void after_step(StepOutcome const& outcome);
    int asked_to_leave() const;
    bool agree_to_leave();
    void leave(int signal, int rank);
    void end_epoch();
    void validate();
    void save_best(Measured& measured);
    void save_checkpoint();
    void save_in_background();
    void settle_background();
    void note_background(std::optional<checkpoint::Outcome> const& outcome);
    void tell_failed(std::int64_t step, AgreedError const& failure);
    void make_background_writer();
    void warn_of_space();
    void compare_space();
    void warn_of_time(double seconds) const;
    void advise_interval(double cost_s);
    checkpoint::Snapshot snapshot();
    void test();
    std::optional<Measured> measure(DataModule::Set set);
    std::map<std::string, double> figures_of(std::vector<double> const& sums, double weight) const;
    checkpoint::Record record() const;
    void tell(Event const& event) const;
    void warn_of_loss(Measured const& measured) const;
    void remember(std::string const& line);
    bool wants_histograms(std::string const& what) const;
    std::int64_t wanted_pictures() const;
    bool channels_last() const;
    bool done() const {
        return progress_.step >= total_steps_ || data_module_->is_exhausted(progress_.step);
    }
    bool over() const { return done() || !ended_.reason.empty(); }
    double epochs_after(std::int64_t step) const;

    comm::Communicator const& world_;
    RunOptions options_;
    SignalRequests const& signals_;
    comm::Topology topology_;
    RunSetup setup_;
    config::Deck& deck_;
    torch::Device device_ = torch::kCPU;
    Workload work_;
    std::unique_ptr<data::Dataset> of_environment_; ///< its files, where it has some
    std::unique_ptr<data::Audit> audit_;            ///< null: another rank of the host has it
    std::int64_t validation_hash_ = 0;              ///< of what is measured; 0: no samples
    std::unique_ptr<Engine> engine_;
    std::unique_ptr<DataModule> data_module_;
    std::unique_ptr<BatchSource> batches_; ///< null: before the first step, and after the last
    std::optional<PicturedBatches> pictured_;
    std::optional<Schedule> schedule_;
    checkpoint::Store store_;
    std::unique_ptr<checkpoint::BackgroundWriter> background_; ///< null: all are synchronous
    std::optional<AgreedError> background_failure_;            ///< that ends the run
    bool advised_ = false;                                     ///< on the interval, once
    std::vector<std::unique_ptr<Observer>> observers_;
    std::int64_t total_steps_ = 0;

    Progress progress_;
    Ended ended_;
    Walltime walltime_;
    Stopwatch attempt_watch_;
    Stopwatch checkpoint_watch_;
    Stopwatch epoch_watch_;
    std::int64_t epoch_samples_ = 0; ///< learnt in this attempt
    std::int64_t saved_step_ = -1;   ///< of the newest checkpoint that is durable
    std::int64_t samples_done_ = 0;
    double training_s_ = 0;
    double communication_s_ = 0; ///< exposed
    double imbalance_s_ = 0;
    Stragglers stragglers_;
    bool diverged_ = false; ///< that replicas' weights differ has been told
    std::string attempt_;
    std::vector<std::string> remarks_; ///< on what the deck asks for and does not get
};

} // namespace lockstep::train
