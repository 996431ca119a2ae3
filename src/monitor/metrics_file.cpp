#include "lockstep/monitor/metrics_file.hpp"

#include "base/clock.hpp"
#include "base/device_gauge.hpp"
#include "base/memory.hpp"
#include "monitor/late_file.hpp"
#include "monitor/resource_text.hpp"

#include <nlohmann/json.hpp>

namespace lockstep::monitor {

namespace {

using Json = nlohmann::ordered_json;

struct ToJson {
    std::optional<double> utilization; ///< of rank 0's device, per cent

    Json operator()(train::Started const& e) const {
        Json json{{"event", "start"},
                  {"version", e.version},
                  {"attempt", e.attempt},
                  {"ranks", e.host_of_rank.size()},
                  {"hosts", e.host_of_rank},
                  {"devices", e.device_of_rank},
                  {"replicas", e.replicas},
                  {"seed", e.seed},
                  {"model", e.model},
                  {"parameters", e.parameters},
                  {"backend", e.backend},
                  {"batch", e.batch},
                  {"accumulate", e.accumulate},
                  {"train_samples", e.train_samples},
                  {"validation_samples", e.validation_samples},
                  {"test_samples", e.test_samples},
                  {"replicas_of_rank", e.replicas_of_rank},
                  {"steps_per_epoch", e.steps_per_epoch},
                  {"total_steps", e.total_steps},
                  {"learning_rate", e.peak_rate},
                  {"computes_with", e.computes_with}};
        if (!e.memory_of_rank.empty()) {
            json["memory"] = e.memory_of_rank;
        }
        if (!e.code.empty()) {
            json["code"] = e.code;
        }
        if (e.delta > 0) {
            json["delta"] = e.delta;
        }
        return json;
    }
    Json operator()(train::Resumed const& e) const {
        return {{"event", "resume"},
                {"file", e.file},
                {"step", e.step},
                {"skipped", e.skipped},
                {"forced", e.forced}};
    }
    Json operator()(train::Step const& e) const {
        Json json{{"event", "step"},
                  {"step", e.step},
                  {"epoch", e.epoch},
                  {"loss", e.loss},
                  {"learning_rate", e.learning_rate},
                  {"samples_per_s", static_cast<double>(e.samples) / e.step_s},
                  {"step_ms", 1e3 * e.step_s},
                  {"data_ms", 1e3 * e.data_s},
                  {"forward_ms", 1e3 * e.forward_s},
                  {"backward_ms", 1e3 * e.backward_s},
                  {"communication_ms", 1e3 * e.communication_s},
                  {"imbalance_ms", 1e3 * e.imbalance_s},
                  {"hidden_communication_ms", 1e3 * e.hidden_s},
                  {"exchanged_bytes", e.exchanged_bytes},
                  {"messages", e.messages},
                  {"update_ms", 1e3 * e.update_s},
                  {"grad_norm", e.grad_norm},
                  {"memory_bytes", resident_memory()}};
        if (e.loss_scale != 1 || e.skipped) {
            json["loss_scale"] = e.loss_scale;
            json["skipped"] = e.skipped;
        }
        if (e.graph_replays + e.eager_passes > 0) {
            json["graph_replays"] = e.graph_replays;
            json["eager_passes"] = e.eager_passes;
        }
        if (!e.weight_hash.empty()) {
            json["weight_hash"] = e.weight_hash;
        }
        if (!e.diverged.empty()) {
            json["diverged"] = e.diverged;
        }
        for (auto const& [name, value] : e.figures) {
            json[name] = value;
        }
        if (e.straggler >= 0) {
            json["straggler"] = e.straggler;
            json["straggler_ms"] = 1e3 * e.straggler_s;
        }
        if (utilization) {
            json["device_utilization"] = *utilization;
        }
        if (e.device_memory > 0) {
            json["device_memory_bytes"] = e.device_memory;
            json["device_memory_reserved_bytes"] = e.device_memory_reserved;
            json["device_memory_peak_bytes"] = e.device_memory_peak;
        }
        return json;
    }
    Json operator()(train::Measured const& e) const {
        Json json{{"event", e.set}, {"step", e.step},       {"epoch", e.epoch},
                  {"loss", e.loss}, {"samples", e.samples}, {"seconds", e.seconds},
                  {"best", e.best}};
        // Of each class there may be one: names are looked for among the few fields above only.
        auto const fields = json;
        auto& all = json.get_ref<Json::object_t&>();
        for (auto const& [name, value] : e.metrics) {
            if (fields.contains(name)) {
                json[name] = value;
            } else {
                all.emplace_back(name, value);
            }
        }
        if (!e.confusion.counts.empty()) {
            json["confusion"] = confusion_json(e.confusion);
        }
        if (!e.baseline.metrics.empty()) {
            json["baseline"] = e.baseline.metrics;
        }
        return json;
    }
    Json operator()(train::Epoch const& e) const {
        Json json{{"event", "epoch"}, {"step", e.step}, {"epoch", e.epoch}};
        json.update(learnt(e));
        return with_resources(std::move(json), e.resources);
    }
    Json operator()(train::Measuring const&) const { return nullptr; }  // for the terminal
    Json operator()(train::Histograms const&) const { return nullptr; } // for event files
    Json operator()(train::Pictures const&) const { return nullptr; }   // the same
    Json operator()(train::CheckpointWritten const& e) const {
        Json json{{"event", "checkpoint"},     {"step", e.step},       {"file", e.file},
                  {"bytes", e.bytes},          {"seconds", e.seconds}, {"stall_s", e.stall_s},
                  {"collective", e.collective}};
        if (e.epsilon) {
            json["epsilon"] = *e.epsilon;
        }
        return json;
    }
    Json operator()(train::CheckpointFailed const& e) const {
        return {{"event", "failure"},
                {"fatal", false},
                {"step", e.step},
                {"cause", e.cause},
                {"message", e.message}};
    }
    Json operator()(train::Remark const&) const { return nullptr; } // for people
    Json operator()(train::Profiled const& e) const {
        auto operators = Json::array();
        for (auto const& each : e.operators) {
            operators.push_back({{"name", each.name},
                                 {"device", each.on_device},
                                 {"calls", each.calls},
                                 {"self_ms", 1e3 * each.self_s},
                                 {"total_ms", 1e3 * each.total_s}});
        }
        auto ranks = Json::array();
        for (auto const& each : e.rank_times) {
            ranks.push_back({{"rank", each.rank},
                             {"steps_ms", 1e3 * each.steps_s},
                             {"data_ms", 1e3 * each.data_s},
                             {"compute_ms", 1e3 * each.compute_s},
                             {"waited_ms", 1e3 * each.waited_s},
                             {"waited_for", each.waited_for},
                             {"communication_ms", 1e3 * each.communication_s},
                             {"update_ms", 1e3 * each.update_s}});
        }
        auto memory = Json::array();
        for (auto const& each : e.memory) {
            memory.push_back({{"part", each.part},
                              {"device", each.on_device},
                              {"max_bytes", each.max},
                              {"at_peak_bytes", each.at_peak}});
        }
        return {{"event", "profile"},
                {"step", e.last},
                {"first_step", e.first},
                {"last_step", e.last},
                {"file", e.file},
                {"seconds", e.seconds},
                {"clock_offset_s", e.clock_offset_s},
                {"clock_error_s", e.clock_error_s},
                {"operators", std::move(operators)},
                {"ranks", std::move(ranks)},
                {"memory", std::move(memory)}};
    }
    Json operator()(train::Signalled const& e) const {
        return {{"event", "signal"},
                {"step", e.step},
                {"signal", e.signal},
                {"rank", e.rank},
                {"by_launcher", e.by_launcher}};
    }
    Json operator()(train::Ended const& e) const {
        Json json{{"event", "end"},
                  {"reason", e.reason},
                  {"step", e.step},
                  {"steps_done", e.steps_done},
                  {"seconds", e.seconds},
                  {"samples_per_s", e.samples_per_s},
                  {"communication_share", e.communication_share},
                  {"imbalance_share", e.imbalance_share},
                  {"peak_memory_bytes", e.peak_memory}};
        if (e.best_step >= 0) {
            json["best_metric"] = e.best_metric;
            json["best"] = e.best;
            json["best_step"] = e.best_step;
        }
        if (e.unfinished) {
            json["unfinished_epoch"] = learnt(*e.unfinished);
        }
        if (e.epsilon) {
            json["epsilon"] = *e.epsilon;
        }
        if (!e.early_stop.empty()) {
            json["early_stop"] = e.early_stop;
        }
        return with_resources(std::move(json), e.resources);
    }

    /// A row for each true class.
    static Json confusion_json(train::Confusion const& confusion) {
        auto const size = static_cast<std::ptrdiff_t>(confusion.classes.size());
        auto rows = Json::array();
        for (auto row = confusion.counts.begin(); row != confusion.counts.end(); row += size) {
            rows.push_back(std::vector<std::int64_t>(row, row + size));
        }
        return {{"classes", confusion.classes}, {"counts", std::move(rows)}};
    }

    static Json learnt(train::Epoch const& e) {
        Json json{{"loss", e.loss},
                  {"samples", e.samples},
                  {"seconds", e.seconds},
                  {"samples_per_s", e.samples_per_s}};
        if (e.accuracy) {
            json["accuracy"] = *e.accuracy;
        }
        for (auto const& [name, value] : e.figures) {
            json[name] = value;
        }
        return json;
    }

    static Json with_resources(Json json, train::Resources const& used) {
        if (auto resources = resources_json(used); !resources.is_null()) {
            json["resources"] = std::move(resources);
        }
        return json;
    }
};

} // namespace

struct MetricsFile::State {
    LateFile file;
    DeviceGauge gauge;
    Stopwatch since_start;
};

MetricsFile::MetricsFile(std::filesystem::path const& path)
    : state_(new State{LateFile(path, opening_of_record(path)), {}, {}}) {}

MetricsFile::~MetricsFile() = default;

void MetricsFile::on(train::Event const& event) {
    auto const* const step = std::get_if<train::Step>(&event);
    if (step != nullptr && !step->logged) {
        return;
    }
    if (auto const* const started = std::get_if<train::Started>(&event)) {
        state_->gauge.look_at(started->device_of_rank.empty() ? "cpu" : started->device_of_rank[0]);
    }
    auto json =
        std::visit(ToJson{step == nullptr ? std::nullopt : state_->gauge.utilization()}, event);
    if (json.is_null()) {
        return;
    }
    json["time"] = utc_now();
    json["elapsed_s"] = state_->since_start.seconds();
    state_->file.append_text(json.dump() + "\n");
}

} // namespace lockstep::monitor
