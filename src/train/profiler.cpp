#include "profiler.hpp"

#include "base/own_directory.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "device/device.hpp"
#include "device/kineto.hpp"
#include "device/nvtx.hpp"
#include "lockstep/base/error.hpp"
#include "trace/request.hpp"
#include "trace/trace_file.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <sstream>

namespace lockstep::train {

namespace {

constexpr std::size_t max_operators = 200'000;    ///< in a rank's file
constexpr std::size_t operators_of_all = 400'000; ///< in that of all ranks
constexpr std::size_t max_scopes = 1'000'000;     ///< of a rank
constexpr std::size_t max_told_operators = 20;
constexpr std::size_t max_told_ranks = 32;
constexpr double look_every_s = 1;

double seconds_of(std::int64_t ns) {
    return 1e-9 * static_cast<double>(ns);
}

/// Adds scopes to those of the same threads.
void append(std::vector<RecordedThread>& all, std::vector<RecordedThread> const& more) {
    for (auto const& thread : more) {
        auto const same = std::ranges::find(all, thread.index, &RecordedThread::index);
        if (same == all.end()) {
            all.push_back(thread);
        } else if (same->scopes.size() < max_scopes) {
            same->scopes.insert(same->scopes.end(), thread.scopes.begin(), thread.scopes.end());
        }
    }
}

std::string times_text(Profiled::RankTimes const& e) {
    return nlohmann::json{e.rank,     e.steps_s,    e.data_s,          e.compute_s,
                          e.waited_s, e.waited_for, e.communication_s, e.update_s}
        .dump();
}

Profiled::RankTimes times_from(std::string const& text) {
    auto const json = nlohmann::json::parse(text);
    return {.rank = json.at(0),
            .steps_s = json.at(1),
            .data_s = json.at(2),
            .compute_s = json.at(3),
            .waited_s = json.at(4),
            .waited_for = json.at(5),
            .communication_s = json.at(6),
            .update_s = json.at(7)};
}

} // namespace

/// A timeline that is being recorded.
struct Profiler::Window {
    config::StepRange steps;
    trace::RankActivity activity;
    Recorder::Cursor cursor{};
    trace::ClockOffset first_offset;
    trace::ClockOffset last_offset;
    std::unique_ptr<Kineto> kineto; ///< null: it does not work here
    std::string without;            ///< why
    double seconds = 0;             ///< beside the steps

    // Once it has ended, by rank 0's clock.
    std::vector<trace::StepTimes> times{};
    std::vector<trace::LastToArrive> last{};
    double clock_error_s = 0; ///< of all ranks the largest

    /// In the run's directory: of the file of all ranks, without its ending.
    std::string name() const { return concat("profile/steps-", steps.first, "-", steps.last); }
};

Profiler::Profiler(Dependencies const& parts)
    : parts_(parts), recorder_(Recorder::of_this_thread()),
      wanted_(config::steps_of(parts.facts.deck().profile.steps)) {
    if (recorder_) {
        mark_nvtx_ranges(*recorder_, parts.facts.device);
    }
}

Profiler::~Profiler() = default;

std::int64_t Profiler::asked() {
    if (!parts_.facts.world.is_root() || !recorder_ || since_looked_.seconds() < look_every_s) {
        return 0;
    }
    since_looked_.restart();
    return trace::take_request(parts_.facts.deck().run.directory, config::max_profiled_steps);
}

bool Profiler::is_due() const {
    auto const step = parts_.progress.step + 1;
    return wanted_ && wanted_->first <= step && step <= wanted_->last;
}

void Profiler::begin_step() {
    if (!window_ && is_due() && comm::all_ranks(parts_.facts.world, recorder_ != nullptr)) {
        start();
    }
}

void Profiler::start() {
    Stopwatch const watch;
    window_ = std::make_unique<Window>();
    window_->steps = {parts_.progress.step + 1, wanted_->last};
    try {
        window_->kineto = std::make_unique<Kineto>(*recorder_, parts_.facts.device,
                                                   parts_.facts.deck().profile.memory);
    } catch (std::exception const& error) {
        window_->without = first_line(error.what());
    }
    window_->first_offset = trace::measure_clock_offset(parts_.facts.world, *recorder_);
    window_->cursor = recorder_->newest();
    try {
        if (window_->kineto) {
            window_->kineto->start();
        }
    } catch (std::exception const& error) {
        window_->kineto.reset();
        window_->without = first_line(error.what());
    }
    window_->seconds = watch.seconds();
}

void Profiler::end_step(std::int64_t asked, bool is_last) {
    if (window_) {
        append(window_->activity.threads, recorder_->read(window_->cursor));
        if (is_last || parts_.progress.step >= window_->steps.last) {
            finish();
        }
    }
    if (asked > 0 && !window_) {
        auto const step = parts_.progress.step;
        wanted_ = config::StepRange{step + 1, step + asked};
    }
}

void Profiler::finish() {
    Stopwatch const watch;
    auto const window = std::move(window_);
    wanted_.reset();
    window->steps.last = parts_.progress.step;
    try {
        if (window->kineto) {
            window->kineto->stop(window->activity);
        }
    } catch (std::exception const& error) {
        window->without = first_line(error.what());
    }
    window->last_offset = trace::measure_clock_offset(parts_.facts.world, *recorder_);
    window->seconds += watch.seconds();
    write(*window);
}

std::vector<trace::LastToArrive>
Profiler::last_to_arrive(std::vector<trace::StepTimes> const& steps) const {
    auto const& world = parts_.facts.world;
    // All ranks have the same steps, unless one has recorded more than its memory holds.
    auto const count =
        comm::all_reduce(world, static_cast<std::int64_t>(steps.size()), comm::Reduce::minimum);
    std::vector<std::int64_t> latest;
    for (std::int64_t at = 0; at < count; ++at) {
        latest.push_back(steps[static_cast<std::size_t>(at)].arrived);
    }
    comm::all_reduce(world, std::span(latest), comm::Reduce::maximum);
    std::vector<int> ranks;
    for (std::size_t at = 0; at < latest.size(); ++at) {
        ranks.push_back(steps[at].arrived == latest[at] ? world.rank() : world.size());
    }
    comm::all_reduce(world, std::span(ranks), comm::Reduce::minimum);
    auto& computed = latest; // by the rank that came last
    for (std::size_t at = 0; at < computed.size(); ++at) {
        computed[at] = ranks[at] == world.rank() ? steps[at].computed
                                                 : std::numeric_limits<std::int64_t>::min();
    }
    comm::all_reduce(world, std::span(computed), comm::Reduce::maximum);
    std::vector<trace::LastToArrive> last;
    for (std::size_t at = 0; at < computed.size(); ++at) {
        last.push_back({world.size() == 1 ? -1 : ranks[at], computed[at]});
    }
    return last;
}

Profiled::RankTimes Profiler::own_times(std::vector<trace::StepTimes> const& steps,
                                        std::vector<trace::LastToArrive> const& last) const {
    Profiled::RankTimes times{.rank = parts_.facts.world.rank()};
    std::map<int, std::int64_t> waited_for;
    for (std::size_t at = 0; at < steps.size(); ++at) {
        auto const& step = steps[at];
        times.steps_s += seconds_of(step.end - step.begin);
        times.data_s += seconds_of(step.data);
        times.compute_s += seconds_of(step.compute);
        times.waited_s += seconds_of(step.waited);
        times.communication_s += seconds_of(step.communication);
        times.update_s += seconds_of(step.update);
        if (at < last.size() && last[at].rank >= 0 && last[at].rank != times.rank) {
            waited_for[last[at].rank] += step.waited;
        }
    }
    auto const max =
        std::ranges::max_element(waited_for, {}, [](auto const& e) { return e.second; });
    times.waited_for = max == waited_for.end() || max->second == 0 ? -1 : max->first;
    return times;
}

void Profiler::write(Window& window) {
    Stopwatch const watch;
    auto const& world = parts_.facts.world;
    trace::correct(window.activity, {window.first_offset, window.last_offset});
    window.activity.held = parts_.engine->held_memory();
    auto const main =
        std::ranges::find(window.activity.threads, std::size_t{0}, &RecordedThread::index);
    if (main != window.activity.threads.end()) {
        window.times = trace::step_times(*main);
    }
    window.last = last_to_arrive(window.times);
    window.clock_error_s = comm::all_reduce(
        world, seconds_of(std::max(window.first_offset.error_ns, window.last_offset.error_ns)),
        comm::Reduce::maximum);
    auto const failure = write_files(window);
    auto profiled = told_of(window);
    profiled.seconds = window.seconds + watch.seconds();

    auto const say = [&](std::string const& what, std::string const& why) {
        auto const of_rank = comm::all_gather_text(world, why);
        auto const first = std::ranges::find_if(of_rank, [](auto const& e) { return !e.empty(); });
        if (first != of_rank.end()) {
            parts_.observers.tell(Remark{
                concat("warning: ", what, " (rank ", first - of_rank.begin(), "): ", *first)});
        }
        return first != of_rank.end();
    };
    say("the timeline has no operators of LibTorch", window.without);
    if (!say("the timeline was not written", failure)) {
        parts_.observers.tell(profiled);
    }
}

/// The rank's own file, and that of all ranks. Returns  what went wrong here; empty: nothing.
std::string Profiler::write_files(Window const& window) const {
    auto const& world = parts_.facts.world;
    auto const& activity = window.activity;
    auto const begin = window.times.empty() ? std::numeric_limits<std::int64_t>::max()
                                            : window.times.front().begin;
    trace::TraceText::Of const of{.rank = world.rank(),
                                  .host = comm::host_name(),
                                  .device = world.device(),
                                  .origin_ns =
                                      comm::all_reduce(world, begin, comm::Reduce::minimum)};
    std::vector<std::pair<std::string, std::string>> const facts{
        {"first step", std::to_string(window.steps.first)},
        {"last step", std::to_string(window.steps.last)},
        {"ranks", std::to_string(world.size())},
        {"attempt", parts_.facts.attempt},
        {"clock error in microseconds", fixed(1e6 * window.clock_error_s, 3)}};
    auto const place = std::filesystem::path(parts_.facts.deck().run.directory) / window.name();
    auto own = trace::rank_trace(of, activity, window.last, max_operators);
    auto const failure = comm::failure_of([&] {
        make_own_directory(place.parent_path());
        trace::TraceFile file(place / (trace::rank_name(world.rank()) + ".json.gz"));
        file.append(own.whole_of_rank(facts, world.size()));
        file.commit();
    });
    auto const share = operators_of_all / static_cast<std::size_t>(world.size());
    if (share < activity.operators.size() && share < max_operators) {
        own = trace::rank_trace(of, activity, window.last, share);
    }
    auto const merged = comm::failure_of([&] {
        trace::write_merged(world, place.string() + ".json.gz", own.events(),
                            trace::trace_tail(facts));
    });
    return merged ? merged->what() : failure ? failure->what() : "";
}

Profiled Profiler::told_of(Window const& window) const {
    auto const& world = parts_.facts.world;
    Profiled profiled{.first = window.steps.first,
                      .last = window.steps.last,
                      .file = window.name() + ".json.gz",
                      .clock_error_s = window.clock_error_s};
    auto const own = times_text(own_times(window.times, window.last));
    for (auto const& text : comm::all_gather_text(world, own)) {
        profiled.rank_times.push_back(times_from(text));
    }
    std::ranges::stable_sort(profiled.rank_times, std::greater<>(), &Profiled::RankTimes::waited_s);
    profiled.rank_times.resize(std::min(profiled.rank_times.size(), max_told_ranks));
    profiled.clock_offset_s = comm::all_gather(world, seconds_of(window.last_offset.offset_ns));
    profiled.clock_offset_s.resize(std::min(profiled.clock_offset_s.size(), max_told_ranks));
    for (auto const& each : trace::top_operators(window.activity.operators, max_told_operators)) {
        profiled.operators.push_back({each.name, each.calls, seconds_of(each.total_ns),
                                      seconds_of(each.self_ns), each.on_device});
    }
    for (auto const& each : trace::memory_by_part(window.activity)) {
        profiled.memory.push_back({each.part, each.on_device, each.max, each.at_peak});
    }
    return profiled;
}

} // namespace lockstep::train
