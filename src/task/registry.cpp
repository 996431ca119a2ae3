#include "base/list.hpp"
#include "base/number.hpp"
#include "base/suggestion.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/task/task.hpp"
#include "nn/find_kind.hpp"

#include <algorithm>
#include <utility>

#include "tasks.hpp"

namespace lockstep::task {

std::vector<TaskKind> task_kinds() {
    std::vector<TaskKind> kinds{classification_kind(), ctc_kind(),         export_kind(),
                                language_kind(),       multi_label_kind(), regression_kind(),
                                segmentation_kind()};
    if (auto ppo = ppo_kind()) {
        kinds.push_back(std::move(*ppo));
    }
    std::ranges::sort(kinds, {}, &TaskKind::name);
    return kinds;
}

namespace {

constexpr char const* listed_metrics = "task.metrics"; ///< a key

constexpr nn::PluginUse plugins{"task.kind", "lockstep_task_plugin", "LOCKSTEP_TASKS",
                                "lockstep tasks"};

TaskKind find_kind(std::string const& name) {
    if (name == "ppo" && !ppo_kind()) {
        throw Error(ExitCode::unavailable,
                    {"task.kind = ppo", "this program was built without reinforcement learning",
                     "Build the program again with -DLOCKSTEP_WITH_RL=ON, or choose another task "
                     "(lockstep tasks lists all tasks)"});
    }
    return nn::find_kind(plugins, name, task_kinds());
}

config::OwnValues values_of(config::Task const& chosen, TaskKind const& kind) {
    return {"task", chosen.own, kind.keys};
}

} // namespace

void require_known(config::Task const& chosen) {
    values_of(chosen, find_kind(chosen.kind));
}

Samples Samples::of(data::Dataset const& dataset) {
    return {.inputs = dataset.inputs(),
            .targets = dataset.targets(),
            .class_names = dataset.class_names(),
            .class_counts = dataset.class_counts(),
            .token_bytes = dataset.token_bytes(),
            .masked = dataset.is_masked()};
}

Samples Samples::of(data::Facts const& facts) {
    auto names = facts.classes;
    while (std::cmp_less(names.size(), facts.class_count)) {
        names.push_back(std::to_string(names.size()));
    }
    return {.inputs = facts.inputs,
            .targets = facts.targets,
            .class_names = std::move(names),
            .token_bytes = facts.token_bytes,
            .target_mean = facts.target_mean,
            .target_std = facts.target_std};
}

Samples Samples::of(rl::Spaces const& spaces) {
    auto const moments = static_cast<std::uint64_t>(spaces.window);
    auto const size = static_cast<std::uint64_t>(spaces.observation);
    h5::Shape const shape = moments > 1 ? h5::Shape{moments, size / moments} : h5::Shape{size};
    return {.inputs = {{"observations", h5::Type::f32, shape, false, false}}, .spaces = spaces};
}

data::Labels labels_of(config::Task const& chosen) {
    return find_kind(chosen.kind).labels;
}

bool is_played(config::Task const& chosen) {
    return find_kind(chosen.kind).environment != nullptr;
}

rl::EnvironmentMaker open_environment(config::Task const& chosen, std::string const& files) {
    auto const kind = find_kind(chosen.kind);
    return kind.environment ? kind.environment(values_of(chosen, kind), files) : nullptr;
}

bool Samples::ask_for(std::string const& metric) const {
    return std::ranges::find(metrics, metric) != metrics.end();
}

std::unique_ptr<Task> make_task(config::Task const& chosen, Samples const& samples) {
    auto const kind = find_kind(chosen.kind);
    return kind.make(values_of(chosen, kind), samples);
}

namespace {

std::string model_file_of(config::Deck const& deck) {
    auto const file = deck.model.own.find("file");
    return file == deck.model.own.end() ? "" : file->second;
}

} // namespace

std::unique_ptr<Task> make_task_of(config::Deck const& deck, Samples samples) {
    samples.model_file = model_file_of(deck);
    samples.metrics = asked_metrics(deck);
    return make_task(deck.task, samples);
}

std::vector<MetricKind> metrics_of(config::Deck const& deck) {
    auto const kind = find_kind(deck.task.kind);
    auto metrics = kind.metrics;
    if (kind.metrics_of_file) {
        auto const more = kind.metrics_of_file(model_file_of(deck));
        metrics.insert(metrics.end(), more.begin(), more.end());
    }
    return metrics;
}

MetricKind const* find_metric(std::vector<MetricKind> const& kinds, std::string const& wanted) {
    auto const is_meant = [&](std::string const& name) {
        auto const stem = name.ends_with("-K") ? name.substr(0, name.size() - 1) : name;
        auto const number = number_of<std::int64_t>(
            wanted.starts_with(stem) ? wanted.substr(stem.size()) : std::string());
        return name == wanted ? stem == name : stem != name && number.value_or(0) > 0;
    };
    auto const found = std::ranges::find_if(kinds, is_meant, &MetricKind::name);
    return found == kinds.end() ? nullptr : &*found;
}

MetricKind metric_of(config::Deck const& deck, std::string const& key, std::string const& wanted) {
    if (wanted.empty()) {
        return find_kind(deck.task.kind).metrics.front();
    }
    auto const kinds = metrics_of(deck);
    std::vector<std::string> names;
    for (auto const& metric : kinds) {
        names.push_back(metric.name);
    }
    auto const* const found = find_metric(kinds, wanted);
    if (found == nullptr) {
        throw Error(ExitCode::usage,
                    {concat(key, " = ", wanted),
                     concat("the metrics of ", deck.task.kind, " are ", joined(names, ", ")),
                     suggestion(wanted, names, "Choose one of them")});
    }
    if (found->is_table && key != listed_metrics) {
        throw Error(ExitCode::usage,
                    {concat(key, " = ", wanted),
                     concat(wanted, " is a table, by which no model is the best"),
                     concat("Choose another metric, and name this one in ", listed_metrics)});
    }
    return {wanted, found->more_is_better, found->on_request, found->is_table};
}

std::vector<std::string> asked_metrics(config::Deck const& deck) {
    std::vector<std::string> asked;
    auto const ask = [&](std::string const& metric) {
        if (std::ranges::find(asked, metric) == asked.end()) {
            asked.push_back(metric);
        }
    };
    for (auto const& metric : list_texts(deck.task.metrics)) {
        ask(metric_of(deck, listed_metrics, metric).name);
    }
    auto const kinds = find_kind(deck.task.kind).metrics;
    for (auto const& metric : {deck.task.metric, deck.checkpoint.best}) {
        if (auto const* const kind = find_metric(kinds, metric); kind && kind->on_request) {
            ask(metric);
        }
    }
    return asked;
}

} // namespace lockstep::task
