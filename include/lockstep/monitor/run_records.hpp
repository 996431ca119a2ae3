#pragma once

#include "lockstep/events/events.hpp"

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace lockstep::monitor {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

/// A step as recorded in metrics.jsonl; values that were not recorded are NaN.
struct StepRecord {
    std::int64_t step = 0;
    double epoch = unknown;
    double loss = unknown;
    double learning_rate = unknown;
    double grad_norm = unknown;
    double samples_per_s = unknown;
    double step_ms = unknown;
    double data_ms = unknown;
    double forward_ms = unknown;
    double backward_ms = unknown;
    double communication_ms = unknown; ///< exposed
    double imbalance_ms = unknown;
    double hidden_ms = unknown;
    double update_ms = unknown;
    double memory_bytes = unknown;
    double device_memory_bytes = unknown;
    double device_utilization = unknown; ///< per cent
    double straggler_ms = unknown;
    int straggler = -1;
    std::uint64_t weight_hash = 0; ///< 0: not recorded
    std::string diverged{};        ///< the first replica with other weights than replica 0
};

/// A validation, or a test, or an epoch's means while it was learnt.
struct MeasuredRecord {
    std::int64_t step = 0;
    double epoch = unknown;
    double loss = unknown;
    double seconds = unknown;
    bool best = false;
    std::map<std::string, double> metrics; ///< accuracy and so on
    train::Confusion confusion{};
};

/// Whether a metric is that of one class, "f1.coat", where there is one over all of them.
inline bool is_of_one_class(std::string const& metric) {
    return metric.find('.') != std::string::npos;
}

struct CheckpointRecord {
    std::int64_t step = 0;
    std::string file;
    double bytes = unknown;
    double seconds = unknown;
    double stall_s = unknown;
};

/// What all ranks of an attempt have used; what was not measured is NaN.
struct ResourceRecord {
    double seconds = 0;
    double processor_s = 0; ///< of all ranks
    double disk_read_bytes = 0;
    double disk_written_bytes = 0;
    double exchanged_bytes = 0;
    double network_bytes = 0;
    double processor_joules = unknown; ///< of the hosts that report them
    double device_joules = unknown;

    bool is_known() const { return processor_s > 0; }
    double joules() const; ///< of processors and devices, as far as they are known
    void add(ResourceRecord const& more);
};

/// A timeline that was written.
struct ProfileRecord {
    struct Operator {
        std::string name;
        bool on_device = false;
        std::int64_t calls = 0;
        double self_ms = unknown;
        double total_ms = unknown;
    };
    /// Milliseconds of a rank over all steps.
    struct Rank {
        std::int64_t rank = 0;
        double steps_ms = unknown;
        double data_ms = unknown;
        double compute_ms = unknown;
        double waited_ms = unknown; ///< for ranks that still computed
        double communication_ms = unknown;
        double update_ms = unknown;
        std::int64_t waited_for = -1; ///< the rank that it waited for most; -1: none
    };
    /// Bytes of the host's or the device's memory that a part of rank 0's steps allocated.
    struct Memory {
        std::string part;
        bool on_device = false;
        double max = unknown;
        double at_peak = unknown; ///< when all parts together had the most of this memory
    };

    std::int64_t step = 0; ///< the last
    std::int64_t first_step = 0;
    std::string file; ///< in the run's directory
    double clock_error_s = unknown;
    std::vector<Operator> operators;
    std::vector<Rank> ranks; ///< that waited longest
    std::vector<Memory> memory;
};

/// One attempt of the run.
struct AttemptRecord {
    std::string start; ///< UTC
    std::int64_t ranks = 0;
    std::int64_t first_step = 0;
    std::int64_t last_step = 0;
    double elapsed_s = 0; ///< from its start to its newest record
    std::string reason;   ///< as in the end record; "failed"; empty while there is none
    std::string cause;    ///< of a failure
    std::vector<std::string> memory{}; ///< by rank: where its arenas lay; empty: not known
    ResourceRecord resources{};        ///< of its epochs; of the whole attempt once it has ended
};

/// What metrics.jsonl tells about a run, over all its attempts. Where a later attempt did steps
/// again, its records count and the earlier attempt's do not. Each `read` continues where the last
/// one ended; the file may be growing at that time, on another host. What the newest attempt ran on
/// counts once it has done something: one that took no step changes nothing, and one that found the
/// run finished is not even listed (only older versions of the program recorded those). A line
/// without an end is left for the next call, lines that are not JSON are skipped.
class RunRecords {
  public:
    /// `run`: the run's directory, or its metrics.jsonl.
    ///
    /// Throws  std::filesystem::filesystem_error when the directory cannot be looked at
    explicit RunRecords(std::filesystem::path const& run);

    /// Reads what has been added since the last call; returns whether there was something. A file
    /// that has become shorter belongs to a new run: all of it is read again.
    ///
    /// Throws  Error 66 when there is no such file; 65, 73 or 74 when it cannot be read
    bool read();

    /// Throws  Error 65 when `named`, which these records were read from, is a file of another kind
    void require_of_a_run(std::filesystem::path const& named) const;

    std::string const& name() const noexcept { return name_; }
    std::filesystem::path const& path() const noexcept { return path_; }

    std::string model;
    std::string backend;
    std::string version;
    std::string newest; ///< time of the newest record, UTC
    std::int64_t ranks = 0;
    std::int64_t replicas = 0;
    std::int64_t parameters = 0;
    std::int64_t batch = 0; ///< samples per step
    std::int64_t steps_per_epoch = 0;
    std::int64_t total_steps = 0;
    std::vector<std::string> hosts;   ///< by rank
    std::vector<std::string> devices; ///< by rank
    std::vector<StepRecord> steps;
    std::vector<MeasuredRecord> validations;
    std::vector<MeasuredRecord> tests;
    std::vector<MeasuredRecord> epochs;
    std::vector<CheckpointRecord> checkpoints;
    std::vector<ProfileRecord> profiles;
    std::vector<AttemptRecord> attempts;
    std::string best_metric;
    double best = unknown;
    std::int64_t best_step = -1;
    double epsilon = unknown; ///< of DP-SGD, after `epsilon_step` steps
    double delta = unknown;   ///< at which epsilon holds
    std::int64_t epsilon_step = 0;
    double mean_samples_per_s = unknown; ///< of the newest attempt that came to an end
    double communication_share = unknown;
    double peak_memory_bytes = unknown; ///< the largest of all ranks
    std::int64_t bad_lines = 0;

    /// The newest step that any record names.
    std::int64_t last_step() const;
    /// Seconds that all attempts took together, as far as they are recorded.
    double seconds() const;
    /// What all attempts have used together, as far as it is recorded.
    ResourceRecord resources() const;

  private:
    class Line;
    void forget();
    void take(std::string const& line);
    void begin(Line const& line);
    void take_setup(Line const& line);
    bool has_ended() const;
    void leave_without_steps();
    void drop_after(std::int64_t step);
    void end(Line const& line);
    void take_epsilon(Line const& line);

    std::filesystem::path path_;
    std::string name_;
    std::uint64_t offset_ = 0; ///< of the first byte that was not read yet
    std::uint64_t inode_ = 0;
    std::string newest_start_;   ///< the start record of the newest attempt
    std::string counting_start_; ///< the start record of the newest attempt that has done something
};

} // namespace lockstep::monitor
