#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace lockstep::train {

// What a run reports to its observers. No torch here: code that is built without it reads these.

struct Started {
    std::string version;
    std::string attempt; ///< identifies this attempt of the run
    std::vector<std::string> host_of_rank;
    std::vector<std::string> device_of_rank;
    std::vector<std::int64_t> replicas_of_rank;
    std::int64_t replicas = 0;
    std::int64_t seed = 0;
    std::string model;
    std::int64_t parameters = 0; ///< scalars that are trained
    std::int64_t frozen = 0;     ///< scalars that are not, or not yet
    std::string backend;
    std::int64_t batch = 0; ///< samples per replica and micro-batch
    std::int64_t accumulate = 1;
    std::int64_t train_samples = 0;
    std::int64_t validation_samples = 0;
    std::int64_t test_samples = 0;
    std::int64_t steps_per_epoch = 0;
    std::int64_t total_steps = 0;
    double base_rate = 0; ///< as the deck says
    double peak_rate = 0; ///< after scaling by replicas
    std::vector<std::string> class_names;
    std::vector<std::int64_t> class_counts; ///< empty: the target is not one class per sample
    std::vector<double> class_weights;      ///< of the training loss; empty: all 1
    std::string directory;
    std::uint64_t memory_needed = 0;         ///< bytes per rank, without activations
    std::vector<std::string> memory_of_rank; ///< where its arenas lie; empty: nobody asked
    /// The LibTorch, the instructions, the threads and the processor of each rank; one for all
    /// ranks where they are equal.
    std::vector<std::string> computes_with{};
    std::map<std::string, std::string> code; ///< hashes of plug-ins and libraries, by their keys
    std::string remark;                      ///< about what the deck asks for and does not get
    double delta = 0;                        ///< at which epsilon is told; 0: no privacy.noise
};

struct Resumed {
    std::string file;
    std::int64_t step = 0;
    std::vector<std::string> skipped; ///< files skipped, and why
    std::vector<std::string> forced;  ///< deck changes that --force allowed
};

struct Step {
    std::int64_t step = 0; ///< steps done, this one included
    std::int64_t total_steps = 0;
    double epoch = 0;                        ///< epochs done, with a fraction
    double loss = 0;                         ///< mean over all replicas' samples
    std::map<std::string, double> figures{}; ///< the task's, means over the same
    double learning_rate = 0;
    double grad_norm = 0;     ///< L2, before clipping
    std::int64_t samples = 0; ///< of this step, over all replicas
    bool logged = false;      ///< a step of monitor.log-every
    // Seconds of rank 0.
    double step_s = 0;
    double data_s = 0;
    double forward_s = 0;
    double backward_s = 0;
    double communication_s = 0; ///< exposed: after all ranks had arrived
    double imbalance_s = 0;     ///< waiting for ranks that still computed
    double hidden_s = 0;        ///< communication while backward ran
    int straggler = -1;         ///< the rank that the others wait for most, if it matters
    double straggler_s = 0;     ///< by how much it is later than the others, since the last record
    bool straggler_stays = false;     ///< it has been this rank for long; reported once per rank
    std::int64_t exchanged_bytes = 0; ///< read from or sent to other ranks by rank 0
    std::int64_t messages = 0; ///< of gradients and parameters, sent to other hosts by rank 0
    double update_s = 0;
    std::int64_t graph_replays = 0; ///< passes of rank 0 that a graph of the device replayed
    std::int64_t eager_passes = 0;  ///< passes without a graph, in runs that use graphs
    double loss_scale = 1;
    bool skipped = false;      ///< under fp16: the gradient was not finite, nothing was changed
    std::string weight_hash{}; ///< after the step, in hexadecimal digits; empty: nobody asked
    std::string diverged{};    ///< the first replica with other weights than replica 0, if any
    std::int64_t device_memory = 0;          ///< bytes, allocated; 0: no device
    std::int64_t device_memory_reserved = 0; ///< allocated, or kept for later
    std::int64_t device_memory_peak = 0;
};

struct Measuring {   ///< a validation or a test is running
    std::string set; ///< "validation" or "test"
    std::int64_t done = 0;
    std::int64_t all = 0; ///< batches or groups of episodes, of rank 0
};

/// Shape  pixels [height, width, channels]
struct Picture {
    std::int64_t width = 0;
    std::int64_t height = 0;
    std::int64_t channels = 1;        ///< 1 grey, 3 red, green and blue
    std::vector<std::uint8_t> pixels; ///< 0 to 255
};

/// One of the samples of a set whose losses are largest.
struct WorstSample {
    std::int64_t sample = 0; ///< its number in the set, from 0
    double loss = 0;
    std::string truth;      ///< class, classes or values; empty where that is too much for a line
    std::string prediction; ///< the same, of the model
    std::string file{};     ///< which has the sample
    std::int64_t number_in_file = 0;
    std::string source{}; ///< what the sample was made from; empty: the file does not say
    std::optional<Picture> picture{}; ///< where it was asked for
};

/// How often samples of each class were taken for each class.
struct Confusion {
    std::vector<std::string> classes;
    std::vector<std::int64_t> counts; ///< [true class][predicted class]; empty: not asked for
};

/// What a constant answer reaches on a set, which a model that has learnt something beats.
struct Baseline {
    std::string what; ///< "predicting the mean of the training targets"; empty: there is none
    std::map<std::string, double> metrics{};
    bool more_is_better = true; ///< of the metric by which the best model is chosen
};

struct Measured {    ///< a validation or a test
    std::string set; ///< "validation" or "test"
    std::int64_t step = 0;
    double epoch = 0;
    double loss = 0;
    std::int64_t samples = 0;
    std::map<std::string, double> metrics;
    double seconds = 0;
    bool best = false;
    std::string best_metric;
    std::vector<std::string> remarks{}; ///< of evaluate_file, for the user
    Confusion confusion{};
    Baseline baseline{};
    std::vector<WorstSample> worst{}; ///< of evaluate_file, the worst first; on rank 0
};

/// What one rank has used.
struct RankResources {
    int rank = 0;
    double user_s = 0; ///< of processors
    double system_s = 0;
    double memory_peak = 0; ///< bytes, resident
    double disk_read = 0;   ///< bytes that had to come from a disk, or go there
    double disk_written = 0;
    double exchanged = 0;                       ///< bytes read from or sent to other ranks
    std::optional<double> device_utilization{}; ///< per cent, mean over logged steps
    std::optional<double> device_joules{}; ///< of its device; none where a lower rank has it, too

    double processor_s() const { return user_s + system_s; }
};

/// What all ranks have used over some time.
struct Resources {
    double seconds = 0; ///< of time; 0: not measured
    int ranks = 0;
    double user_s = 0; ///< of processors, sums over ranks
    double system_s = 0;
    double disk_read = 0;
    double disk_written = 0;
    double exchanged = 0;
    double network = 0; ///< bytes that the hosts' interfaces received and sent, for whomever
    std::optional<double> processor_joules{};   ///< of the hosts' processor packages (RAPL)
    std::optional<double> device_joules{};      ///< of the ranks' devices (NVML)
    int hosts = 0;                              ///< hosts of the ranks
    int hosts_with_energy = 0;                  ///< hosts that report the energy of their packages
    std::optional<double> device_utilization{}; ///< per cent, mean over ranks and logged steps
    RankResources memory_peak{};                ///< the rank that used most memory
    RankResources busiest{};                    ///< the rank that used most processor time
    RankResources idlest{};                     ///< the rank that used least
    std::vector<RankResources> of_rank{};       ///< all ranks where they are few; else empty
};

struct Epoch {
    std::int64_t epoch = 0; ///< epochs done
    std::int64_t step = 0;
    double loss = 0;                ///< mean over the epoch's samples while they were learnt
    std::optional<double> accuracy; ///< where the task has one
    std::map<std::string, double> figures{}; ///< the task's and the data module's
    std::int64_t samples = 0;
    double seconds = 0;
    double samples_per_s = 0;
    Resources resources{}; ///< since the end of the last epoch, or the attempt's start
};

/// How the values of one parameter are spread: equal shares of [minimum, maximum].
struct Histogram {
    std::string name; ///< of the parameter
    double minimum = 0;
    double maximum = 0;
    double sum = 0;
    double sum_of_squares = 0;
    std::vector<double> counts;
};

struct Histograms { ///< at the end of an epoch, where monitor.histograms asks for them
    std::int64_t step = 0;
    std::string what; ///< "weights" or "gradients"
    std::vector<Histogram> parameters;
};

struct Pictures { ///< samples of a run's first batch, as the model gets them
    std::int64_t step = 0;
    std::vector<Picture> samples;
};

struct CheckpointWritten {
    std::int64_t step = 0;
    std::string file;
    std::uint64_t bytes = 0;
    double seconds = 0;
    double stall_s = 0; ///< for which training stood still
    bool collective = false;
    std::optional<double> epsilon{}; ///< of the steps up to it, where privacy.noise is set
};

struct CheckpointFailed { ///< the run continues
    std::int64_t step = 0;
    std::string cause;   ///< "rank 3 (host, cpu) in PHASE"
    std::string message; ///< what, why, what to do
    bool older = false;  ///< whether the run has older checkpoints
};

/// Something that the user should know and that does not change the run.
struct Remark {
    std::string text;
    bool is_detail = false; ///< for the log, and for who wants to hear all
};

/// A timeline was written, of steps first to last.
struct Profiled {
    /// An operator that rank 0 ran, on its processor or on its device.
    struct Operator {
        std::string name;
        std::int64_t calls = 0;
        double total_s = 0;
        double self_s = 0; ///< without the operators that it called
        bool on_device = false;
    };
    /// What a rank spent its time on, seconds over all steps.
    struct RankTimes {
        int rank = 0;
        double steps_s = 0;
        double data_s = 0; ///< waiting for its next batch
        double compute_s = 0;
        double waited_s = 0;        ///< for ranks that still computed
        int waited_for = -1;        ///< the rank that it waited for most; -1: none
        double communication_s = 0; ///< exposed
        double update_s = 0;
    };

    /// Bytes of the host's or the device's memory that a part of rank 0's steps had allocated since
    /// the first of them.
    struct Memory {
        std::string part; ///< "activations (forward)", ...
        bool on_device = false;
        std::int64_t max = 0;
        std::int64_t at_peak = 0; ///< when all parts together had the most of this memory
    };

    std::int64_t first = 0;
    std::int64_t last = 0;
    std::string file;                    ///< in the run's directory
    double seconds = 0;                  ///< that profiling took besides the steps
    std::vector<Operator> operators{};   ///< that took longest
    std::vector<RankTimes> rank_times{}; ///< that waited longest
    std::vector<Memory> memory{};        ///< with profile.memory
    std::vector<double>
        clock_offset_s{}; ///< by rank, where they are few: from rank 0's clock, already corrected
    double clock_error_s = 0; ///< half of the longest of the ranks' shortest round trips
};

struct Signalled {
    std::int64_t step = 0;
    std::string signal; ///< "SIGTERM", …, or "walltime"
    int rank = 0;
    bool by_launcher = false; ///< which ends its ranks; nobody else has asked for it
};

struct Ended {
    /// "finished", "already finished", "paused" (as requested), "stopped" (epochs are left), the
    /// signal's name or "walltime".
    std::string reason;
    std::int64_t step = 0;
    std::int64_t steps_done = 0; ///< in this attempt
    double seconds = 0;
    double samples_per_s = 0;       ///< mean over this attempt's training
    double communication_share = 0; ///< exposed communication over step time
    double imbalance_share = 0;     ///< waiting for slower ranks over step time
    std::uint64_t peak_memory = 0;  ///< bytes, the largest of all ranks
    std::string best_metric;
    double best = 0;
    std::int64_t best_step = -1;       ///< -1: nothing was measured
    bool best_is_kept = false;         ///< whether best.h5 is the model of that step
    std::optional<Epoch> unfinished{}; ///< of the epoch in which the run ended; its number is that
                                       ///< of the epochs done before
    std::optional<double> epsilon{};   ///< of all steps, where privacy.noise is set
    Resources resources{};             ///< of this attempt
    std::string early_stop{};          ///< why the run is over before its last step, if it is
};

using Event = std::variant<Started, Resumed, Step, Measuring, Measured, Epoch, Histograms, Pictures,
                           CheckpointWritten, CheckpointFailed, Remark, Profiled, Signalled, Ended>;

/// Receives a run's events: called by the main thread of rank 0, it must not make collective calls.
/// It may throw only for output that cannot be written: the other ranks do not know of that error,
/// which ends the job.
class Observer {
  public:
    virtual ~Observer() = default;
    virtual void on(Event const& event) = 0;
};

} // namespace lockstep::train
