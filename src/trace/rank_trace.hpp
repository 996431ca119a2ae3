#pragma once

#include "base/recorder.hpp"
#include "trace/clock_offset.hpp"
#include "trace/step_times.hpp"
#include "trace/trace_text.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::trace {

/// Something that LibTorch did.
struct Operator {
    std::string name;
    std::string category;  ///< "cpu_op", "kernel", ... as in PyTorch's traces
    std::int64_t row = 0;  ///< of its thread, or of its device's stream
    bool overlaps = false; ///< others of its stream, so its row is beside theirs
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
    bool on_device = false;
    int device = -1;
    std::int64_t stream = -1;
    std::uint64_t correlation = 0; ///< of a kernel with the call that started it; 0: none
};

/// Bytes that were allocated, or freed (negative), by a part of a step.
struct MemoryChange {
    std::int64_t time_ns = 0;
    std::int64_t bytes = 0;
    std::uint64_t address = 0;
    bool on_device = false;
};

/// Bytes that a rank holds during the whole run: its shares of the flat arrays, and the state of
/// the optimizer for what it updates.
struct HeldMemory {
    std::int64_t parameters = 0;
    std::int64_t gradients = 0;
    std::int64_t optimizer = 0;
    bool on_device = false;
};

/// Gives what a device did while the same stream still did something else a row of its own: kernels
/// of a stream may overlap (programmatic dependent launch), and a row can show only what follows
/// each other or lies within each other.
void separate_overlapping(std::vector<Operator>& operators);

/// What one rank did in some steps, by its own clock.
struct RankActivity {
    std::vector<RecordedThread> threads;
    std::vector<Operator> operators;
    std::vector<MemoryChange> memory;
    HeldMemory held{};
};

/// Converts all times to the clock that `clock` corrects to.
void correct(RankActivity& activity, ClockCorrection const& clock);

/// Which rank arrived last at the exchange of a step, and when it had finished computing.
struct LastToArrive {
    int rank = -1;
    std::int64_t computed_ns = 0;
};

/// The timeline of a rank: its scopes, with the rank that it waited for, LibTorch's operators, at
/// most `max_operators` (the longest), the host's and the device's memory by the part of the step
/// that allocated it, beside what the run holds all the time, and arrows: from each bucket to its
/// exchange, and from the rank that arrived last to where this one continues.
///
/// `last`: by step, like `steps`.
TraceText rank_trace(TraceText::Of const& of, RankActivity const& activity,
                     std::vector<LastToArrive> const& last, std::size_t max_operators);

/// Bytes of the host or of the device that a part of the step had allocated since the first step.
struct PartMemory {
    char const* part = "";
    bool on_device = false;
    std::int64_t max = 0;     ///< at its highest
    std::int64_t at_peak = 0; ///< when all parts together had the most of this memory
};

/// The memory of each part, the host's first, without parts that allocated nothing.
std::vector<PartMemory> memory_by_part(RankActivity const& activity);

/// Operators by name.
struct OperatorTotal {
    std::string name;
    bool on_device = false;
    std::int64_t calls = 0;
    std::int64_t total_ns = 0;
    std::int64_t self_ns = 0; ///< without operators within it
};

/// The `max` operators with the longest self time, the longest first.
std::vector<OperatorTotal> top_operators(std::vector<Operator> operators, std::size_t max);

} // namespace lockstep::trace
