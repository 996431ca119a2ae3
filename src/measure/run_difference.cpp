#include "measure/run_difference.hpp"

#include "base/hash.hpp"
#include "base/text.hpp"
#include "checkpoint/diff.hpp"
#include "checkpoint/store.hpp"
#include "lockstep/monitor/run_records.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace lockstep::measure {

namespace {

using monitor::RunRecords;
using monitor::StepRecord;

/// The first step that both runs told of and that left them with other weights.
std::optional<std::pair<StepRecord, StepRecord>> first_step(RunRecords const& a,
                                                            RunRecords const& b) {
    auto at = b.steps.begin();
    for (auto const& step : a.steps) {
        at = std::find_if(at, b.steps.end(),
                          [&](auto const& other) { return other.step >= step.step; });
        if (at == b.steps.end()) {
            break;
        }
        bool const told = step.weight_hash != 0 && at->weight_hash != 0;
        if (at->step == step.step && told &&
            (step.weight_hash != at->weight_hash || step.diverged != at->diverged)) {
            return std::pair(step, *at);
        }
    }
    return std::nullopt;
}

std::map<std::int64_t, std::filesystem::path> checkpoints_of(std::filesystem::path const& run) {
    std::map<std::int64_t, std::filesystem::path> files;
    for (auto const& entry : checkpoint::Store(run / "checkpoints", 1).list()) {
        files[entry.step] = entry.path;
    }
    return files;
}

/// The first parameter, or else the first of anything, that differs in the first checkpoints from
/// `step` on that both runs have and that are not alike.
std::string in_checkpoints(std::filesystem::path const& a, std::filesystem::path const& b,
                           std::int64_t step) {
    auto const of_b = checkpoints_of(b);
    for (auto const& [at, file] : checkpoints_of(a)) {
        auto const other = of_b.find(at);
        if (at < step || other == of_b.end()) {
            continue;
        }
        auto const differences = checkpoint::diff(file, other->second).state;
        auto const parameter =
            std::find_if(differences.begin(), differences.end(), [](auto const& difference) {
                return difference.where.starts_with("model/");
            });
        if (!differences.empty()) {
            auto const& first = parameter == differences.end() ? differences.front() : *parameter;
            return concat("in the checkpoints of step ", at, ", ", first.where, ": ", first.what);
        }
    }
    return "the checkpoints that both runs have from that step on are identical";
}

/// The memory of each rank in the attempt whose word on `step` counts.
std::vector<std::string> memory_at(RunRecords const& run, std::int64_t step) {
    auto const attempt = std::find_if(run.attempts.rbegin(), run.attempts.rend(),
                                      [&](auto const& each) { return each.first_step < step; });
    return attempt == run.attempts.rend() ? std::vector<std::string>{} : attempt->memory;
}

void add_run(std::vector<std::string>& lines, std::string const& which, StepRecord const& step,
             std::vector<std::string> const& memory) {
    if (!step.diverged.empty()) {
        lines.push_back(concat("  in the ", which, " run, the weights of ", step.diverged));
    }
    for (std::size_t rank = 0; rank < memory.size(); ++rank) {
        lines.push_back(concat("  in the ", which, " run, rank ", rank, " had ", memory[rank]));
    }
}

} // namespace

std::vector<std::string> where_runs_part(std::filesystem::path const& a,
                                         std::filesystem::path const& b) {
    if (!std::filesystem::exists(a / "metrics.jsonl") ||
        !std::filesystem::exists(b / "metrics.jsonl")) {
        return {};
    }
    RunRecords first(a);
    RunRecords second(b);
    first.read();
    second.read();
    auto const found = first_step(first, second);
    if (!found) {
        return {};
    }
    auto const& [one, other] = *found;
    std::vector<std::string> lines{concat("the weights first differ after step ", one.step,
                                          " (rank 0's hashes ", hex(one.weight_hash), " and ",
                                          hex(other.weight_hash), ")"),
                                   "  " + in_checkpoints(a, b, one.step)};
    add_run(lines, "first", one, memory_at(first, one.step));
    add_run(lines, "second", other, memory_at(second, one.step));
    return lines;
}

} // namespace lockstep::measure
