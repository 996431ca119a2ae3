#include "trace/rank_trace.hpp"

#include "base/text.hpp"
#include "comm/phase.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace lockstep::trace {

namespace {

constexpr std::int64_t main_row = 0;
constexpr std::int64_t shortest_arrow_ns = 20'000; ///< of a wait for another rank

/// A number that no other arrow has, in all ranks: Perfetto takes no text.
std::int64_t arrow_id(int rank, std::int64_t arrow) {
    return (std::int64_t{rank} << 32) + arrow;
}

std::size_t index_of(std::vector<StepTimes> const& steps, std::int64_t time_ns) {
    auto const after = std::ranges::upper_bound(steps, time_ns, {}, &StepTimes::begin);
    bool const within = after != steps.begin() && time_ns <= std::prev(after)->end;
    return within ? static_cast<std::size_t>(std::prev(after) - steps.begin()) : steps.size();
}

/// Waits with the name of the rank that they are for.
void add_threads(TraceText& text, RankActivity const& activity, int rank,
                 std::vector<StepTimes> const& steps, std::vector<LastToArrive> const& last) {
    for (auto thread : activity.threads) {
        for (auto& scope : thread.scopes) {
            auto const at = index_of(steps, scope.begin_ns);
            if (scope.kind == ScopeKind::imbalance && at < last.size() && last[at].rank >= 0 &&
                last[at].rank != rank) {
                scope.name = concat("waiting for rank ", last[at].rank);
            }
        }
        text.add(thread);
    }
}

/// From where a bucket was handed over to what became of it in the same step.
void add_bucket_arrows(TraceText& text, RankActivity const& activity, int rank,
                       std::vector<StepTimes> const& steps) {
    struct Ready {
        std::int64_t row = 0;
        std::int64_t time_ns = 0;
    };
    std::map<std::pair<std::size_t, std::int64_t>, Ready> ready; // by step and bucket
    for (auto const& thread : activity.threads) {
        for (auto const& scope : thread.scopes) {
            if (scope.kind == ScopeKind::handed_over) {
                ready[{index_of(steps, scope.begin_ns), scope.number}] = {
                    TraceText::row_of(thread, scope), scope.begin_ns};
            }
        }
    }
    std::int64_t arrows = 0;
    for (auto const& thread : activity.threads) {
        for (auto const& scope : thread.scopes) {
            bool const exchanged =
                scope.kind == ScopeKind::bucket || scope.kind == ScopeKind::travelling;
            auto const from = ready.find({index_of(steps, scope.begin_ns), scope.number});
            if (exchanged && from != ready.end()) {
                text.add_arrow(concat("bucket ", scope.number), arrow_id(rank, 2 * arrows++),
                               {rank, from->second.row, from->second.time_ns},
                               {rank, TraceText::row_of(thread, scope), scope.begin_ns});
            }
        }
    }
}

/// From what the rank that came last computed to where this one could continue. Perfetto turns
/// arrows round that lead to a slice which began earlier, such as the wait for that rank. Both ends
/// are times of their own rank, which differ by the clocks' error.
void add_late_arrows(TraceText& text, int rank, std::vector<StepTimes> const& steps,
                     std::vector<LastToArrive> const& last) {
    for (std::size_t at = 0; at < steps.size() && at < last.size(); ++at) {
        auto const& step = steps[at];
        if (last[at].rank < 0 || last[at].rank == rank || step.waited < shortest_arrow_ns) {
            continue;
        }
        auto const begin = last[at].computed_ns - 1;
        auto const end = std::max(step.arrived + step.waited, begin) + 1;
        text.add_arrow(concat("rank ", last[at].rank, " is late"),
                       arrow_id(rank, 2 * static_cast<std::int64_t>(at) + 1),
                       {last[at].rank, main_row, begin}, {rank, TraceText::communication_row, end});
    }
}

void add_operators(TraceText& text, std::vector<Operator> operators, std::size_t max) {
    if (operators.size() > max) {
        std::ranges::nth_element(operators, operators.begin() + static_cast<std::ptrdiff_t>(max),
                                 std::greater<>(),
                                 [](Operator const& o) { return o.end_ns - o.begin_ns; });
        operators.resize(max);
        std::ranges::sort(operators, {}, &Operator::begin_ns);
    }
    for (auto const& each : operators) {
        text.name_row(each.row, each.on_device
                                    ? concat("device ", each.device, " stream ", each.stream,
                                             each.overlaps ? ", overlapping" : "")
                                    : concat("operators ", each.row - TraceText::operators_row));
        std::string arguments;
        if (each.on_device) {
            arguments = concat("\"device\":", each.device, ",\"stream\":", each.stream);
        }
        if (each.correlation != 0) {
            arguments += concat(arguments.empty() ? "" : ",", "\"correlation\":", each.correlation);
        }
        text.add(TraceText::Slice{.name = each.name,
                                  .category = each.category,
                                  .row = each.row,
                                  .begin_ns = each.begin_ns,
                                  .end_ns = each.end_ns,
                                  .arguments = std::move(arguments)});
    }
}

/// What memory is for, by what the main thread was at when it was allocated.
class MemoryKinds {
  public:
    explicit MemoryKinds(RankActivity const& activity) {
        for (auto const& thread : activity.threads) {
            for (auto const& scope : thread.scopes) {
                bool const part = scope.name == "forward" || scope.name == "backward" ||
                                  scope.name == name_of(comm::Phase::data) ||
                                  scope.name == name_of(comm::Phase::update);
                if (thread.index == 0 && part) {
                    parts_.push_back(&scope);
                }
            }
        }
        std::ranges::sort(parts_, {}, &RecordedScope::begin_ns);
    }

    /// "activations", ...
    std::size_t of(std::int64_t time_ns) const {
        auto const after = std::ranges::upper_bound(parts_, time_ns, {}, &RecordedScope::begin_ns);
        if (after == parts_.begin() || time_ns > (*std::prev(after))->end_ns) {
            return 4;
        }
        auto const& name = (*std::prev(after))->name;
        return name == "forward"                    ? 0
               : name == "backward"                 ? 1
               : name == name_of(comm::Phase::data) ? 2
                                                    : 3;
    }

    static constexpr std::array names{"activations (forward)", "gradients (backward)", "batches",
                                      "update", "other"};

  private:
    std::vector<RecordedScope const*> parts_;
};

using MemoryBytes = std::array<std::int64_t, MemoryKinds::names.size()>;

/// Tells `each` what is allocated in the memory of a change after it.
void follow_memory(RankActivity const& activity,
                   std::function<void(MemoryChange const&, MemoryBytes const&)> const& each) {
    struct Block {
        std::size_t kind = 0;
        std::int64_t bytes = 0;
    };
    MemoryKinds const kinds(activity);
    std::array<MemoryBytes, 2> of_memory{};                 // the host's and the device's
    std::map<std::pair<bool, std::uint64_t>, Block> blocks; // either may have the same address
    for (auto const& change : activity.memory) {
        auto& bytes = of_memory[change.on_device ? 1 : 0];
        auto const key = std::pair(change.on_device, change.address);
        if (change.bytes > 0) {
            auto const kind = kinds.of(change.time_ns);
            blocks[key] = {kind, change.bytes};
            bytes[kind] += change.bytes;
        } else if (auto const block = blocks.find(key); block != blocks.end()) {
            bytes[block->second.kind] -= block->second.bytes;
            blocks.erase(block);
        } else {
            continue; // of before
        }
        each(change, bytes);
    }
}

/// A graph of each memory: what is held all the time, and on it what the steps allocate.
void add_memory(TraceText& text, RankActivity const& activity,
                std::vector<StepTimes> const& steps) {
    auto const add = [&](bool on_device, std::int64_t time_ns, MemoryBytes const& bytes) {
        std::vector<std::pair<std::string, double>> values;
        auto const value = [&values](char const* name, std::int64_t count) {
            values.emplace_back(name, static_cast<double>(count));
        };
        if (auto const& held = activity.held; held.on_device == on_device) {
            value("parameters", held.parameters);
            value("gradients", held.gradients);
            value("optimizer state", held.optimizer);
        }
        for (std::size_t kind = 0; kind < bytes.size(); ++kind) {
            value(MemoryKinds::names[kind], bytes[kind]);
        }
        text.add_counter(on_device ? "device memory" : "host memory", time_ns, values);
    };
    if (!activity.memory.empty() && !steps.empty()) {
        add(activity.held.on_device, steps.front().begin, {});
    }
    follow_memory(activity, [&add](MemoryChange const& change, MemoryBytes const& bytes) {
        add(change.on_device, change.time_ns, bytes);
    });
}

} // namespace

void separate_overlapping(std::vector<Operator>& operators) {
    std::vector<Operator*> in_order;
    std::int64_t next_row = 0;
    for (auto& each : operators) {
        next_row = std::max(next_row, each.row + 1);
        if (each.on_device) {
            in_order.push_back(&each);
        }
    }
    std::ranges::stable_sort(in_order, {}, [](Operator const* each) {
        return std::pair(each->begin_ns, -each->end_ns);
    });
    struct Row {
        std::int64_t number = 0;
        std::vector<std::int64_t> open; ///< ends of what lies within each other
    };
    std::map<std::int64_t, std::vector<Row>> rows_of;
    for (auto* const each : in_order) {
        auto& rows = rows_of[each->row];
        auto const fits = [each](Row& row) {
            while (!row.open.empty() && row.open.back() <= each->begin_ns) {
                row.open.pop_back();
            }
            return row.open.empty() || each->end_ns <= row.open.back();
        };
        auto found = std::ranges::find_if(rows, fits);
        if (found == rows.end()) {
            rows.push_back({.number = rows.empty() ? each->row : next_row++, .open = {}});
            found = rows.end() - 1;
        }
        found->open.push_back(each->end_ns);
        each->row = found->number;
        each->overlaps = found != rows.begin();
    }
}

void correct(RankActivity& activity, ClockCorrection const& clock) {
    for (auto& thread : activity.threads) {
        for (auto& scope : thread.scopes) {
            scope.begin_ns = clock.corrected(scope.begin_ns);
            scope.end_ns = std::max(clock.corrected(scope.end_ns), scope.begin_ns);
        }
    }
    for (auto& each : activity.operators) {
        each.begin_ns = clock.corrected(each.begin_ns);
        each.end_ns = std::max(clock.corrected(each.end_ns), each.begin_ns);
    }
    for (auto& change : activity.memory) {
        change.time_ns = clock.corrected(change.time_ns);
    }
}

TraceText rank_trace(TraceText::Of const& of, RankActivity const& activity,
                     std::vector<LastToArrive> const& last, std::size_t max_operators) {
    TraceText text(of);
    auto const steps =
        activity.threads.empty() ? std::vector<StepTimes>{} : step_times(activity.threads.front());
    add_threads(text, activity, of.rank, steps, last);
    add_operators(text, activity.operators, max_operators);
    add_bucket_arrows(text, activity, of.rank, steps);
    add_late_arrows(text, of.rank, steps, last);
    add_memory(text, activity, steps);
    return text;
}

std::vector<PartMemory> memory_by_part(RankActivity const& activity) {
    struct Memory {
        std::array<PartMemory, MemoryKinds::names.size()> parts{};
        std::int64_t max_total = 0;
    };
    std::array<Memory, 2> memories{}; // the host's and the device's
    follow_memory(activity, [&memories](MemoryChange const& change, MemoryBytes const& bytes) {
        auto& [parts, max_total] = memories[change.on_device ? 1 : 0];
        auto const all = std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
        for (std::size_t kind = 0; kind < bytes.size(); ++kind) {
            parts[kind].part = MemoryKinds::names[kind];
            parts[kind].on_device = change.on_device;
            parts[kind].max = std::max(parts[kind].max, bytes[kind]);
            parts[kind].at_peak = all > max_total ? bytes[kind] : parts[kind].at_peak;
        }
        max_total = std::max(max_total, all);
    });
    std::vector<PartMemory> told;
    for (auto const& memory : memories) {
        std::ranges::copy_if(memory.parts, std::back_inserter(told),
                             [](PartMemory const& part) { return part.max > 0; });
    }
    return told;
}

std::vector<OperatorTotal> top_operators(std::vector<Operator> operators, std::size_t max) {
    // Those that enclose others come before them.
    std::ranges::sort(operators, [](Operator const& a, Operator const& b) {
        return std::tuple(a.row, a.begin_ns, -a.end_ns) < std::tuple(b.row, b.begin_ns, -b.end_ns);
    });
    std::map<std::pair<std::string, bool>, OperatorTotal> totals;
    std::vector<Operator const*> open;
    for (auto const& each : operators) {
        while (!open.empty() &&
               (open.back()->row != each.row || open.back()->end_ns <= each.begin_ns)) {
            open.pop_back();
        }
        auto const spent = each.end_ns - each.begin_ns;
        if (!open.empty()) {
            totals[{open.back()->name, open.back()->on_device}].self_ns -= spent;
        }
        auto& total = totals[{each.name, each.on_device}];
        ++total.calls;
        total.total_ns += spent;
        total.self_ns += spent;
        open.push_back(&each);
    }
    std::vector<OperatorTotal> all;
    for (auto& [key, total] : totals) {
        total.name = key.first;
        total.on_device = key.second;
        all.push_back(total);
    }
    std::ranges::stable_sort(all, std::greater<>(), &OperatorTotal::self_ns);
    all.resize(std::min(all.size(), max));
    return all;
}

} // namespace lockstep::trace
