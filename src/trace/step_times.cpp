#include "trace/step_times.hpp"

#include "comm/phase.hpp"

#include <algorithm>

namespace lockstep::trace {

namespace {

void count(StepTimes& times, RecordedScope const& scope) {
    auto const spent = scope.end_ns - scope.begin_ns;
    auto const is = [&](comm::Phase phase) {
        return scope.kind == ScopeKind::phase && scope.name == name_of(phase);
    };
    if (is(comm::Phase::data)) {
        times.data += spent;
        times.compute -= spent; // it is a part of it
    } else if (is(comm::Phase::compute)) {
        times.compute += spent;
        times.computed = scope.end_ns;
    } else if (is(comm::Phase::update)) {
        times.update += spent;
    } else if (scope.kind == ScopeKind::imbalance) {
        times.arrived = scope.begin_ns;
        times.waited += spent;
    } else if (scope.kind == ScopeKind::communication) {
        times.communication += spent;
        // Parts of those phases.
        times.update -= scope.name.starts_with("publishing") ? spent : 0;
        times.compute -= scope.name.starts_with("waiting for parameters") ? spent : 0;
    }
}

} // namespace

std::vector<StepTimes> step_times(RecordedThread const& thread) {
    std::vector<StepTimes> steps;
    for (auto const& scope : thread.scopes) {
        if (scope.kind == ScopeKind::step && !scope.is_open) {
            steps.push_back({.step = scope.number, .begin = scope.begin_ns, .end = scope.end_ns});
        }
    }
    std::ranges::sort(steps, {}, &StepTimes::begin);
    for (auto const& scope : thread.scopes) {
        auto const after = std::ranges::upper_bound(steps, scope.begin_ns, {}, &StepTimes::begin);
        if (after != steps.begin() && scope.end_ns <= std::prev(after)->end) {
            count(*std::prev(after), scope);
        }
    }
    return steps;
}

} // namespace lockstep::trace
