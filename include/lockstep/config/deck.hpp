#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace lockstep::config {

// The deck: every key a user can set, as plain structs. Users' scripts rely on names and defaults;
// `describe` in src/config/describe.hpp is the one list of them, from which text is parsed, checked
// and printed.

struct Run {
    std::string name;               ///< the deck's name
    std::string directory;          ///< runs/NAME
    std::int64_t seed = 0;          ///< of all random numbers
    std::int64_t replicas = 0;      ///< V; 0: as many as the first start has ranks
    std::string device = "auto";    ///< auto, cpu, cuda, cuda:N
    std::string devices = "all";    ///< all, a count, or a list of device numbers
    std::string mode = "auto";      ///< auto, single, dp, ddp
    std::string placement = "even"; ///< even, speed
    std::int64_t threads = 1;       ///< per replica
    bool deterministic = true;      ///< operators without a deterministic form are refused
    std::string graphs = "auto";    ///< auto, true, false: accelerators record and replay passes
    double walltime_seconds = 0;    ///< of the job, from its start; 0: what the scheduler says
};

struct Data {
    std::string train;                 ///< a file, a list or a glob; empty: none
    std::string validation;            ///< files, or a share of `train` such as 10 %; empty: none
    std::string test;                  ///< files; empty: none
    std::string inputs = "inputs";     ///< names of datasets, with commas
    std::string targets = "targets";   ///< names of datasets, with commas
    bool normalise_targets = false;    ///< of a regression, by mean and std of the training set
    bool sample_per_file = false;      ///< a file is one sample, without a dimension over samples
    std::int64_t sequence = 0;         ///< tokens per sample, cut from all documents; 0: as stored
    std::string mask;                  ///< dataset that marks the tokens to learn; empty: all are
    std::int64_t batch = 32;           ///< samples per replica and micro-batch
    std::int64_t global_batch = 0;     ///< over all replicas; 0: `batch` counts
    bool drop_last = false;            ///< leave out an epoch's last step where it is incomplete
    std::int64_t workers = 2;          ///< loader threads per rank
    std::int64_t prefetch = 4;         ///< batches read ahead, per rank
    std::string augment = "none";      ///< of training samples: flip, crop:4, noise:0.1@0.5
    std::string shuffle = "full";      ///< full, block, none
    std::string sample_weights;        ///< dataset of weights to draw samples by; empty: none
    bool replacement = true;           ///< samples are drawn by weight with replacement
    std::int64_t bucket_by_length = 0; ///< batches that are sorted by length together; 0: off
    std::string cache = "none";        ///< none, memory, local:DIRECTORY
};

/// Keys of a section that belong to the model or task that `name` or `kind` chooses, which checks
/// them itself.
struct OwnKeys : std::map<std::string, std::string> {
    using map::map;
    /// Where each was written, "inputs/x.ini:12"; messages name it.
    std::map<std::string, std::string> origins;
    std::vector<std::string> common; ///< the section's other keys, for hints in messages
};

struct Model {
    std::string name;      ///< as `lockstep models` lists them
    OwnKeys own{};         ///< that model's own keys
    std::string weights{}; ///< a file that the first weights come from; empty: drawn from the seed
    std::string weights_match = "strict";   ///< strict, common: tensors of both; others are drawn
    std::int64_t lora_rank = 0;             ///< of adapters, which alone are trained; 0: off
    double lora_alpha = 16;                 ///< over the rank: the scale of what they add
    std::string lora_targets = "attention"; ///< layers that get one: attention, name patterns
    std::string lora_train = "none";        ///< name patterns of parameters that are trained, too
};

struct Task {
    std::string kind = "classification"; ///< as `lockstep tasks` lists them
    std::string metric;                  ///< what `best` means by default; empty: the task's first
    OwnKeys own{};                       ///< that task's own keys
    std::string metrics{}; ///< names of more metrics to measure, with commas; empty: none
};

struct Optimizer {
    std::string name = "adamw";               ///< adamw, adam, sgd, lars, lamb
    double learning_rate = 0.001;             ///< the peak, before it is scaled
    std::string scale_learning_rate = "none"; ///< none, linear, sqrt
    std::int64_t reference_replicas = 1;      ///< replicas that the learning rate was chosen for
    double weight_decay = 0.01;               ///< of all parameters but those that no_decay exempts
    std::string no_decay = "biases, norms";   ///< exempt: biases, norms, name patterns; or none
    std::string groups = "none";              ///< name patterns with rates and decays of their own
    double layer_decay = 1;                   ///< of rates, from block to block; 1: off
    std::string freeze = "none";              ///< name patterns of parameters that are not trained
    std::int64_t thaw_epoch = 0;              ///< epochs after which they are; 0: never
    double ema = 0;                           ///< decay of the averaged weights; 0: off
    double proximal = 0;                      ///< strength of the pull to the first weights
    double momentum = 0;                      ///< of sgd and lars
    bool nesterov = false;                    ///< of sgd
    std::vector<double> betas = {0.9, 0.999}; ///< of both moments; adamw, adam, lamb
    double epsilon = 1e-8;                    ///< in the denominator; adamw, adam, lamb
    double trust_coefficient = 0.001;         ///< change per step over the weights' norm; lars
    double clip_norm = 0;                     ///< L2 norm of the whole gradient; 0: off
    std::int64_t accumulate = 1;              ///< micro-batches per step
    std::string update = "sharded";           ///< what a rank updates, and holds of it
};

struct Schedule {
    std::string name = "constant";   ///< constant, cosine, step …: describe.hpp has all
    double warmup_epochs = 0;        ///< 0: `warmup_steps` counts
    std::int64_t warmup_steps = 0;   ///< 0: `warmup_epochs` counts
    double minimum = 0;              ///< the lowest rate, as a share of the peak
    std::int64_t step_epochs = 30;   ///< epochs between the reductions of "step"
    double factor = 0.1;             ///< that each reduction multiplies the rate by
    std::string milestones = "none"; ///< epochs of the reductions of "multi-step"
    double power = 1;                ///< of "polynomial"
    double rise = 0.3;               ///< share of the steps in which "one-cycle" rises
    double start_divisor = 25;       ///< the peak over the first rate of "one-cycle"
    double end_divisor = 1e4;        ///< the first rate of "one-cycle" over its last
    double cycle_epochs = 10;        ///< of the first cycle of "cosine-restarts"
    std::int64_t cycle_factor = 1;   ///< each of its cycles is so many times as long as the last
    std::int64_t patience = 10;      ///< validations without improvement that "plateau" allows
    double threshold = 1e-4;         ///< relative; what is no more than this is no improvement
    std::int64_t cooldown = 0;       ///< validations after a reduction that do not count
};

struct Precision {
    std::string compute = "fp32";        ///< fp32, bf16, fp16
    std::string loss_scale = "dynamic";  ///< dynamic, or a number; of fp16
    bool tf32 = true;                    ///< GPUs may round inputs of matrix products to it
    bool cudnn_benchmark = true;         ///< switched off where run.deterministic is true
    bool gradient_checkpointing = false; ///< activations are computed again in backward
    std::string memory_format = "auto";  ///< auto, contiguous, channels-last; of accelerators
};

/// Learning from another model's outputs, besides the targets.
struct Distill {
    std::string teacher;         ///< its file; empty: none
    std::string teacher_deck;    ///< deck that describes its model where the file does not
    std::string outputs;         ///< file of its outputs, in place of the model; empty: none
    double temperature = 4;      ///< that both models' scores are divided by
    double weight = 0.5;         ///< of the teacher's part of the loss; the targets have the rest
    std::string hidden = "none"; ///< pairs STUDENT:TEACHER of layers whose outputs are matched
    double hidden_weight = 1;    ///< of the sum of their distances, which is added to the loss
};

/// Removal of weights, which are 0 from then on.
struct Prune {
    std::string pattern = "none";    ///< none, unstructured, channels, or N:M: N of each M stay
    std::string target = "macs 0.5"; ///< of channels: the share of multiply-adds that stays
    std::int64_t multiple = 1;       ///< of channels: each layer keeps a multiple of this number
    double sparsity = 0.5;           ///< of unstructured: the share of weights that goes
    std::string score = "magnitude"; ///< magnitude, taylor
    std::string scope = "global";    ///< of unstructured and channels: global, layer
    std::string except = "none";     ///< name patterns of weights that all stay
    std::int64_t begin = 0;          ///< steps done when weights are first removed
    std::int64_t end = 0;            ///< steps done when they are last removed; at most begin: once
    std::int64_t every = 100;        ///< steps between removals
};

/// Training for a model in int8.
struct Quantise {
    bool aware = false; ///< layers compute as they will in int8, and learn its scales
};

/// Differential privacy of training samples (DP-SGD).
struct Privacy {
    double noise = 0;               ///< standard deviation, relative to `clip`; 0: off
    double clip = 1;                ///< largest L2 norm of a sample's gradient
    double delta = 1e-5;            ///< for which epsilon is reported
    double epsilon = 0;             ///< limit that a run stays within; 0: none
    std::string accountant = "rdp"; ///< rdp, prv
    std::string key; ///< file of the secret key of noise and draws; empty: in run.directory

    bool is_on() const noexcept { return noise > 0; }
};

struct Communication {
    std::string backend = "auto";       ///< auto, mpi, nccl, oneccl
    double bucket_mb = 25;              ///< 10^6 bytes of float32 gradients that travel together
    double first_bucket_mb = 1;         ///< the same for the bucket that is ready first
    std::string compression = "none";   ///< none, fp16, bf16, powersgd
    std::int64_t powersgd_rank = 4;     ///< rank of PowerSGD's matrices
    std::string reduction = "ordered";  ///< ordered, native
    bool unused_parameters = false;     ///< parameters may have no gradient
    bool static_graph = false;          ///< the same parameters have a gradient in every step
    bool broadcast_buffers = true;      ///< replica 0's are sent to all before each step
    bool sync_batch_norm = false;       ///< statistics over all replicas
    std::int64_t timeout_seconds = 300; ///< longest wait for another rank or its device
    std::int64_t check_replicas_every = 100; ///< steps; 0: never
};

/// Comparison of what hosts compute.
struct Check {
    std::int64_t compute_every = 200; ///< steps; 0: never
};

struct Checkpoint {
    std::int64_t every_steps = 1000; ///< 0: only at the end
    double every_minutes = 0;        ///< 0: off
    std::int64_t keep = 3;           ///< how many of the newest files stay
    bool asynchronous = true;        ///< written while training continues
    std::string resume = "auto";     ///< auto, none, a file
    std::string best;                ///< metric; the task's own when empty
    std::string local;               ///< a directory written first; empty: none
};

struct FaultTolerance {
    std::int64_t restarts = 0;                   ///< in a row without progress, by lockstep launch
    std::int64_t recovery_timeout_seconds = 300; ///< from a restart to its first step
    std::string memory_copy_every = "auto";      ///< auto, none, or steps
    double straggler_factor = 0;                 ///< 0: no rank is too slow
};

struct Monitor {
    std::int64_t log_every = 50;        ///< steps between step records
    std::string progress = "auto";      ///< auto, bar, plain, none
    bool tensorboard = true;            ///< event files in the run's directory
    std::string histograms = "weights"; ///< none, weights, gradients (weights, too)
    std::int64_t images = 8;            ///< samples of the first batch that are shown
    bool plots = true;                  ///< pictures of the metrics at the end
    std::string weight_hash = "auto";   ///< auto, true, false: in step records
};

struct Profile {
    std::string steps;   ///< "100-110", or one step; empty: none
    bool memory = false; ///< allocations are recorded, too
};

struct Train {
    double epochs = 0;               ///< passes over data.train; 0: not limited by epochs
    std::int64_t steps = 0;          ///< of the optimizer; 0: not limited by steps
    std::int64_t validate_every = 0; ///< steps; 0: at the end of each epoch
    std::int64_t patience = 0;       ///< validations without improvement that end the run; 0: off
    double minimum_change = 0;       ///< of the metric; what is no more than this is none
};

struct Deck {
    Run run;
    Data data;
    Model model;
    Task task;
    Optimizer optimizer;
    Schedule schedule;
    Precision precision;
    Distill distill;
    Prune prune;
    Quantise quantise;
    Privacy privacy;
    Communication communication;
    Check check;
    Checkpoint checkpoint;
    FaultTolerance fault_tolerance;
    Monitor monitor;
    Profile profile;
    Train train;
};

/// What may happen to a key when a run is resumed.
enum class AtResume {
    free,   ///< may change: length, logging, checkpoint, workers, backend
    forced, ///< changes the result: only with --force, which is recorded
    renewed ///< describes this start only
};

/// A key and its value, as text.
struct Setting {
    std::string key; ///< "optimizer.learning-rate"
    std::string value;
    AtResume at_resume = AtResume::free;
};

/// All keys with their values, in the order of the reference.
std::vector<Setting> settings(Deck const& deck);

/// The deck as an INI text that, read again, gives the same deck; without keys that have no effect
/// because of others.
std::string to_text(Deck const& deck);

/// The settings that differ and may not change at a resume, one line each: "key = new (was old)";
/// empty if there are none. Both decks are as runs were started with them, with `auto` and 0
/// replaced by what was chosen.
std::vector<std::string> forbidden_changes(Deck const& before, Deck const& now);

} // namespace lockstep::config
