#include "device/kineto.hpp"

#include "base/text.hpp"

#include <torch/csrc/autograd/profiler_kineto.h>
#include <torch/csrc/profiler/collection.h>

#include <algorithm>
#include <cctype>
#include <ctime>
#include <map>
#include <set>
#include <utility>

namespace lockstep::train {

namespace {

namespace profiler = torch::autograd::profiler;

profiler::ProfilerConfig profiler_config(bool memory) {
    profiler::ProfilerConfig config(profiler::ProfilerState::KINETO, false, memory);
    // Replicas run on threads of their own, which the profiler has not started; of allocations it
    // hears only where it was.
    config.experimental_config.profile_all_threads = !memory;
    return config;
}

/// The processor's, and those of the device's kind, which Kineto names like LibTorch.
std::set<profiler::ActivityType> activities_of(torch::Device device) {
    std::set<profiler::ActivityType> activities{profiler::ActivityType::CPU};
    for (int at = 1; at < static_cast<int>(profiler::ActivityType::NUM_KINETO_ACTIVITIES) - 1;
         ++at) {
        auto const type = static_cast<profiler::ActivityType>(at);
        if (torch::profiler::impl::actToString(type) == c10::DeviceTypeName(device.type())) {
            activities.insert(type);
        }
    }
    return activities;
}

std::int64_t realtime_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    return std::int64_t{1'000'000'000} * now.tv_sec + now.tv_nsec;
}

/// By how much the clock that LibTorch converts its times to is ahead of the recorder's: of a few
/// readings the one that was interrupted least.
std::int64_t measured_difference(Recorder const& recorder) {
    std::int64_t best = 0;
    std::int64_t shortest = -1;
    for (int reading = 0; reading < 10; ++reading) {
        auto const before = recorder.now_ns();
        auto const real = realtime_ns();
        auto const after = recorder.now_ns();
        if (shortest < 0 || after - before < shortest) {
            shortest = after - before;
            best = real - (before + (after - before) / 2);
        }
    }
    return best;
}

/// As PyTorch's traces name what Kineto tells by number.
std::string category_of(profiler::KinetoEvent const& event, torch::Device device) {
    auto kind = c10::DeviceTypeName(device.type(), /*lower_case=*/true);
    switch (event.activityType()) {
    case 0:
        return "cpu_op";
    case 1:
        return "user_annotation";
    case 2:
        return "gpu_user_annotation";
    case 3:
        return "gpu_memcpy";
    case 4:
        return "gpu_memset";
    case 5:
        return "kernel";
    case 7:
        return kind + "_runtime";
    case 8:
        return kind + "_driver";
    default:
        return "other";
    }
}

/// Rows for threads and streams, in the order in which they appear.
class Rows {
  public:
    std::int64_t of(bool on_device, std::int64_t device, std::uint64_t resource) {
        auto const key = std::tuple(on_device, device, resource);
        auto const next = static_cast<std::int64_t>(rows_.size());
        return rows_.try_emplace(key, trace::TraceText::operators_row + next).first->second;
    }

  private:
    std::map<std::tuple<bool, std::int64_t, std::uint64_t>, std::int64_t> rows_;
};

using Result = torch::profiler::impl::Result;
using Allocation = torch::profiler::impl::ExtraFields<torch::profiler::impl::EventType::Allocation>;

void add_allocations(std::vector<std::shared_ptr<Result>> const& results, std::int64_t ahead_ns,
                     std::vector<trace::MemoryChange>& into) {
    for (auto const& result : results) {
        result->visit_if_base<Allocation>([&](auto const& allocation) {
            into.push_back({.time_ns = result->start_time_ns_ - ahead_ns,
                            .bytes = allocation.alloc_size_,
                            .address = reinterpret_cast<std::uint64_t>(allocation.ptr_),
                            .on_device = allocation.device_type_ != c10::DeviceType::CPU});
        });
        add_allocations(result->children_, ahead_ns, into);
    }
}

} // namespace

Kineto::Kineto(Recorder const& recorder, torch::Device device, bool memory)
    : recorder_(recorder), device_(device), memory_(memory) {
    profiler::prepareProfiler(profiler_config(memory_), activities_of(device_));
}

Kineto::~Kineto() {
    if (runs_) {
        try {
            profiler::disableProfiler();
        } catch (...) {
            return; // an error unwinds: that is what will be told
        }
    }
}

void Kineto::start() {
    ahead_ns_ = measured_difference(recorder_);
    profiler::enableProfiler(profiler_config(memory_), activities_of(device_));
    runs_ = true;
}

void Kineto::stop(trace::RankActivity& into) {
    if (!std::exchange(runs_, false)) {
        return;
    }
    auto const result = profiler::disableProfiler();
    Rows rows;
    for (auto const& event : result->events()) {
        bool const on_device = event.deviceType() != c10::DeviceType::CPU;
        auto const device = on_device ? event.deviceIndex() : -1;
        auto const resource = on_device ? static_cast<std::uint64_t>(event.deviceResourceId())
                                        : event.startThreadId();
        if (event.durationNs() == 0 && !on_device) {
            continue; // marks of no length, such as allocations
        }
        into.operators.push_back(
            {.name = event.name(),
             .category = category_of(event, device_),
             .row = rows.of(on_device, device, resource),
             .begin_ns = static_cast<std::int64_t>(event.startNs()) - ahead_ns_,
             .end_ns = static_cast<std::int64_t>(event.endNs()) - ahead_ns_,
             .on_device = on_device,
             .device = device,
             .stream = on_device ? static_cast<std::int64_t>(resource) : -1,
             .correlation = on_device ? event.linkedCorrelationId() : event.correlationId()});
    }
    trace::separate_overlapping(into.operators);
    if (memory_) {
        add_allocations(result->event_tree(), ahead_ns_, into.memory);
        std::ranges::stable_sort(into.memory, {}, &trace::MemoryChange::time_ns);
    }
}

} // namespace lockstep::train
