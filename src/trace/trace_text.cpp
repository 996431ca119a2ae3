#include "trace/trace_text.hpp"

#include "base/text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace lockstep::trace {

namespace {

char const* category_of(ScopeKind kind) {
    switch (kind) {
    case ScopeKind::step:
        return "user_annotation"; // as PyTorch's tools look for steps
    case ScopeKind::phase:
        return "phase";
    case ScopeKind::part:
        return "part";
    case ScopeKind::wait:
        return "wait";
    case ScopeKind::imbalance:
        return "imbalance";
    case ScopeKind::communication:
        return "communication";
    case ScopeKind::handed_over:
        return "handed over";
    case ScopeKind::bucket:
    case ScopeKind::travelling:
        return "bucket";
    }
    return "";
}

char const* number_name(ScopeKind kind) {
    switch (kind) {
    case ScopeKind::step:
        return "step";
    case ScopeKind::handed_over:
    case ScopeKind::bucket:
    case ScopeKind::travelling:
        return "bucket";
    default:
        return "number";
    }
}

constexpr std::int64_t beyond_processes = 10'000'000; ///< numbers that no rank has

} // namespace

std::string json_text(std::string_view text) {
    // Names of devices, files and operators may hold what is no UTF-8.
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string rank_name(int rank) {
    return concat("rank-", zero_padded(rank, 4));
}

TraceText::TraceText(Of of) : of_(std::move(of)) {
    begin_event("process_name", 'M', of_.rank, 0);
    auto const words = of_.host.empty()
                           ? concat("rank ", of_.rank)
                           : concat("rank ", of_.rank, " (", of_.host, ", ", of_.device, ")");
    text_ += concat(",\"args\":{\"name\":", json_text(words), "}}");
    begin_event("process_sort_index", 'M', of_.rank, 0);
    text_ += concat(",\"args\":{\"sort_index\":", of_.rank, "}}");
}

void TraceText::begin_event(std::string_view name, char kind, int rank, std::int64_t row) {
    text_ += text_.empty() ? "" : ",\n";
    // Perfetto takes 0 for a process that is not known, and a thread that has the number 0 or that
    // of its process for this one's main thread.
    std::int64_t const process = std::int64_t{rank} + 1;
    text_ += concat("{\"name\":", json_text(name), ",\"ph\":\"", kind, "\",\"pid\":", process,
                    ",\"tid\":", row == 0 ? process : beyond_processes + row);
}

/// Microseconds with three digits behind the point: nanoseconds, none of them lost.
void TraceText::append_time(std::int64_t time_ns) {
    auto const whole = time_ns < 0 ? -time_ns : time_ns;
    text_ += concat(time_ns < 0 ? "-" : "", whole / 1000, ".", zero_padded(whole % 1000, 3));
}

void TraceText::name_row(std::int64_t row, std::string const& name) {
    if (std::find(named_.begin(), named_.end(), row) != named_.end()) {
        return;
    }
    named_.push_back(row);
    begin_event("thread_name", 'M', of_.rank, row);
    text_ += concat(",\"args\":{\"name\":", json_text(name), "}}");
    begin_event("thread_sort_index", 'M', of_.rank, row);
    text_ += concat(",\"args\":{\"sort_index\":", row, "}}");
}

std::int64_t TraceText::row_of(RecordedThread const& thread, RecordedScope const& scope) {
    switch (scope.kind) {
    case ScopeKind::imbalance:
    case ScopeKind::communication:
        return communication_row; // a bucket may be summed across the moment between the two
    case ScopeKind::travelling:
        return travelling_row + scope.number;
    default:
        return static_cast<std::int64_t>(thread.index);
    }
}

void TraceText::add(RecordedThread const& thread) {
    auto const row = static_cast<std::int64_t>(thread.index);
    name_row(row, thread.name);
    for (auto const& scope : thread.scopes) {
        auto const place = row_of(thread, scope);
        if (place != row) {
            name_row(place, place == communication_row ? std::string("communication")
                                                       : concat("bucket ", scope.number));
        }
        std::string arguments;
        if (scope.number >= 0) {
            arguments = concat("\"", number_name(scope.kind), "\":", scope.number);
        }
        if (scope.is_open) {
            arguments += concat(arguments.empty() ? "" : ",", "\"open\":true");
        }
        add({.name = scope.kind == ScopeKind::step && scope.number >= 0
                         ? concat("ProfilerStep#", scope.number)
                         : scope.name,
             .category = category_of(scope.kind),
             .row = place,
             .begin_ns = scope.begin_ns,
             .end_ns = scope.end_ns,
             .arguments = std::move(arguments)});
    }
}

void TraceText::add(Slice const& slice) {
    begin_event(slice.name, 'X', of_.rank, slice.row);
    text_ += concat(",\"cat\":", json_text(slice.category), ",\"ts\":");
    append_time(slice.begin_ns - of_.origin_ns);
    text_ += ",\"dur\":";
    append_time(std::max<std::int64_t>(slice.end_ns - slice.begin_ns, 0));
    text_ += concat(",\"args\":{", slice.arguments, "}}");
}

void TraceText::add_arrow(std::string const& name, std::int64_t id, Point const& from,
                          Point const& to) {
    begin_event(name, 's', from.rank, from.row);
    text_ += concat(",\"cat\":\"arrow\",\"id\":", id, ",\"ts\":");
    append_time(from.time_ns - of_.origin_ns);
    text_ += "}";
    begin_event(name, 'f', to.rank, to.row);
    text_ += concat(",\"cat\":\"arrow\",\"bp\":\"e\",\"id\":", id, ",\"ts\":");
    append_time(to.time_ns - of_.origin_ns);
    text_ += "}";
}

void TraceText::add_counter(std::string const& name, std::int64_t time_ns,
                            std::vector<std::pair<std::string, double>> const& values) {
    begin_event(name, 'C', of_.rank, 0);
    text_ += ",\"ts\":";
    append_time(time_ns - of_.origin_ns);
    text_ += ",\"args\":{";
    for (std::size_t i = 0; i < values.size(); ++i) {
        text_ +=
            concat(i == 0 ? "" : ",", json_text(values[i].first), ":", fixed(values[i].second, 0));
    }
    text_ += "}}";
}

std::string trace_head() {
    return "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
}

std::string trace_tail(std::vector<std::pair<std::string, std::string>> const& facts) {
    std::string text = "\n],\"otherData\":{";
    for (std::size_t i = 0; i < facts.size(); ++i) {
        text +=
            concat(i == 0 ? "" : ",", json_text(facts[i].first), ":", json_text(facts[i].second));
    }
    return text + "}}\n";
}

std::string TraceText::whole_of_rank(std::vector<std::pair<std::string, std::string>> const& facts,
                                     int ranks) const {
    return concat(
        "{\"schemaVersion\": 1,\n\"distributedInfo\": {\"backend\": \"mpi\", \"rank\": ", of_.rank,
        ", \"world_size\": ", ranks, "},\n", trace_head().substr(1), text_, trace_tail(facts));
}

std::string TraceText::whole(std::vector<std::pair<std::string, std::string>> const& facts) const {
    return concat(trace_head(), text_, trace_tail(facts));
}

} // namespace lockstep::trace
