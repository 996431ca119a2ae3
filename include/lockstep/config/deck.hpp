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
    std::string name;      ///< the deck's name
    std::string directory; ///< runs/NAME
    std::int64_t seed = 0;
    std::int64_t replicas = 0;      ///< V; 0: the ranks of the first start
    std::string device = "auto";    ///< auto, cpu, cuda, cuda:N
    std::string devices = "all";    ///< all, how many, or a list of numbers
    std::string mode = "auto";      ///< auto, single, dp, ddp
    std::string placement = "even"; ///< even, speed
    std::int64_t threads = 1;       ///< per replica
    bool deterministic = true;
    double walltime_seconds = 0; ///< of the job; 0: what the scheduler says
};

struct Data {
    std::string train;
    std::string validation;
    std::string test;
    std::string inputs = "inputs";
    std::string targets = "targets";
    bool sample_per_file = false;  ///< a file is one sample, without an extent that counts samples
    std::int64_t batch = 32;       ///< samples per replica and micro-batch
    std::int64_t global_batch = 0; ///< over all replicas; 0: `batch` counts
    bool drop_last = false;
    std::int64_t workers = 2;
    std::int64_t prefetch = 4;
    std::string augment = "none";      ///< of training samples: flip, crop:4, noise:0.1, mask:8:20
    std::string shuffle = "full";      ///< full, block, none
    std::string sample_weights;        ///< dataset of weights to draw samples by; empty: none
    bool replacement = true;           ///< of samples that are drawn by weight
    std::int64_t bucket_by_length = 0; ///< batches of a window sorted by length; 0: off
    std::string cache = "none";        ///< none, memory, local:DIRECTORY
};

/// Keys of a section that belong to what `name` or `kind` chooses; it checks them itself.
struct OwnKeys : std::map<std::string, std::string> {
    using map::map;
    /// Where each was written, "inputs/x.ini:12"; messages name it.
    std::map<std::string, std::string> origins;
    std::vector<std::string> common; ///< the section's other keys, which hints name
};

struct Model {
    std::string name;
    OwnKeys own{};
    std::string weights{}; ///< a file that the first weights come from; empty: drawn from the seed
};

struct Task {
    std::string kind = "classification";
    std::string metric; ///< what `best` means by default; empty: the task's first
    OwnKeys own{};
};

struct Optimizer {
    std::string name = "adamw"; ///< adamw, adam, sgd, lars, lamb
    double learning_rate = 0.001;
    std::string scale_learning_rate = "none"; ///< none, linear, sqrt
    std::int64_t reference_replicas = 1;
    double weight_decay = 0.01;
    std::string no_decay = "biases, norms"; ///< exempt: biases, norms, name patterns; or none
    double ema = 0;                         ///< decay of the averaged weights; 0: off
    double momentum = 0;
    bool nesterov = false;
    std::vector<double> betas = {0.9, 0.999};
    double epsilon = 1e-8;
    double trust_coefficient = 0.001; ///< lars
    double clip_norm = 0;             ///< 0: off
    std::int64_t accumulate = 1;      ///< micro-batches per step
    std::string update = "sharded";   ///< sharded, replicated
};

struct Schedule {
    std::string name = "constant"; ///< constant, cosine, step
    double warmup_epochs = 0;
    std::int64_t warmup_steps = 0;
    double minimum = 0; ///< cosine's last rate, as a share of the peak
    std::int64_t step_epochs = 30;
    double factor = 0.1;
};

struct Precision {
    std::string compute = "fp32";       ///< fp32, bf16, fp16
    std::string loss_scale = "dynamic"; ///< dynamic, or a number; of fp16
    bool tf32 = true;
    bool cudnn_benchmark = true; ///< off where run.deterministic
    bool gradient_checkpointing = false;
};

struct Communication {
    std::string backend = "auto"; ///< auto, mpi, nccl
    double bucket_mb = 25;
    double first_bucket_mb = 1;
    std::string compression = "none"; ///< none, fp16, bf16, powersgd
    std::int64_t powersgd_rank = 4;
    std::string reduction = "ordered"; ///< ordered, native
    bool unused_parameters = false;
    bool static_graph = false;
    bool broadcast_buffers = true;
    bool sync_batch_norm = false;
    std::int64_t timeout_seconds = 300;
    std::int64_t check_replicas_every = 100; ///< steps; 0: never
};

struct Checkpoint {
    std::int64_t every_steps = 1000; ///< 0: only at the end
    double every_minutes = 0;        ///< 0: off
    std::int64_t keep = 3;
    bool asynchronous = true;    ///< written while training continues
    std::string resume = "auto"; ///< auto, none, a file
    std::string best;            ///< metric; the task's own when empty
    std::string local;           ///< a directory written first; empty: none
};

struct FaultTolerance {
    std::int64_t restarts = 0; ///< in a row without progress, by lockstep launch
    std::int64_t recovery_timeout_seconds = 300;
};

struct Monitor {
    std::int64_t log_every = 50;
    std::string progress = "auto";      ///< auto, bar, plain, none
    bool tensorboard = true;            ///< event files in the run's directory
    std::string histograms = "weights"; ///< none, weights, gradients (of both)
    std::int64_t images = 8;            ///< samples of the first batch that are shown
    bool plots = true;                  ///< pictures of the metrics at the end
    bool weight_hash = false;           ///< in step records, to find where two runs part
};

struct Train {
    double epochs = 0;               ///< 0: not limited by epochs
    std::int64_t steps = 0;          ///< 0: not limited by steps
    std::int64_t validate_every = 0; ///< steps; 0: at the end of each epoch
};

struct Deck {
    Run run;
    Data data;
    Model model;
    Task task;
    Optimizer optimizer;
    Schedule schedule;
    Precision precision;
    Communication communication;
    Checkpoint checkpoint;
    FaultTolerance fault_tolerance;
    Monitor monitor;
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

/// The deck as an INI text that, read again, gives the same deck.
std::string to_text(Deck const& deck);

/// The settings that differ and may not change at a resume.
std::vector<std::string> forbidden_changes(Deck const& before, Deck const& now);

} // namespace lockstep::config
