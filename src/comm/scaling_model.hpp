#pragma once

#include <cstdint>
#include <functional>

namespace lockstep::comm {

/// What it takes to move bytes: latency + bytes / bandwidth.
struct NetworkModel {
    double latency_s = 0;
    double bytes_per_s = 0;

    double seconds(double bytes) const { return latency_s + bytes / bytes_per_s; }

    /// Fits the model to the times of a small and a large message.
    static NetworkModel through(double small_bytes, double small_s, double large_bytes,
                                double large_s);

    /// Fits the network of a host to how long training's ordered sum took for two sizes, over one
    /// rank of each of several hosts.
    static NetworkModel of_sums(int hosts, double small_bytes, double small_s, double large_bytes,
                                double large_s);
};

/// Seconds of the parts of one rank's step.
struct StepParts {
    double compute = 0;   ///< data, forward and backward of one replica
    double backward = 0;  ///< of that
    double sum = 0;       ///< of gradients within the host, not hidden
    double update = 0;    ///< and distributing the parameters
    double imbalance = 0; ///< waiting for the slowest
    double rest = 0;
};

/// The work of a step on a number of ranks, compared with the step that was measured.
struct StepLoad {
    std::int64_t replicas = 1;
    std::int64_t samples = 1; ///< of all replicas
    double compute = 1;       ///< of a replica, relative to the measured one
};

/// What predictions are made from.
struct ScalingInputs {
    /// One replica on one rank, the host otherwise idle; `imbalance`: waiting for the other hosts,
    /// where each has one such rank
    StepParts alone;
    StepParts together;     ///< a replica on each of `measured` ranks of one host
    int measured = 1;       ///< 1: `together` is not known
    double arena_bytes = 0; ///< of all gradients
    double carried = 1;     ///< share of a gradient's bytes that is sent (compression)
    int buckets = 1;
    bool sharded = true;   ///< optimizer.update
    bool overlaps = false; ///< the network works while backward runs (NCCL)
    bool follows = false;  ///< parameters travel while the next forward runs (ParameterGate)
    /// Forward and backward passes of a replica's step, before each of which parameters are asked for
    /// bucket by bucket (ParameterLoans); 0: they travel once, after the update.
    int lent_passes = 0;
    /// Each rank is a host of the schedule: ranks that share one add nothing up first (NCCL).
    bool ranks_are_hosts = false;
    double copy_per_s = 0; ///< bytes that one rank copies in memory
    NetworkModel between;  ///< hosts
    int ranks_per_host = 1;
    std::int64_t replicas = 0; ///< fixed; 0: as many as ranks
    std::int64_t batch = 1;    ///< samples of one replica's step
    /// The load, where it depends on the number of ranks in another way than by `replicas` and
    /// `batch`; may throw. Null: from those two.
    std::function<StepLoad(int ranks)> load{};
};

/// A row of the table.
struct Prediction {
    int ranks = 1;
    int hosts = 1;
    std::int64_t replicas = 1;
    StepParts parts;
    double between_s = 0; ///< exposed sums between hosts
    double step_s = 0;
    double samples_per_s = 0;
    double speed_up = 1; ///< of samples per second, against one rank
    double efficiency = 1;
};

/// Predicts the step on `ranks` ranks. Ranks that share a host slow each other down as measured,
/// and further in proportion beyond the measured number; a rank computes its replicas one after the
/// other; the time of the sharded update falls with the ranks; gradients cross each host's network
/// twice, but the host's own part, on the route and with the rounds and messages of training's own
/// schedule (HostSchedule); the all-reduce of the step's sums takes 2 ceil(log2 hosts) rounds.
/// Parameters that are lent cross it in each pass of each replica that a rank computes, and each
/// bucket costs the way to all other hosts and back, while the one before is computed.
///
/// Throws  Error 64 for fewer replicas than ranks; what `load` throws
Prediction predict(ScalingInputs const& inputs, int ranks);

} // namespace lockstep::comm
