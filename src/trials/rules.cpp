#include "trials/rules.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/nn/registry.hpp"
#include "lockstep/task/task.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace lockstep::trials {

namespace {

bool varies(search::Space const& space, std::string_view key) {
    return std::ranges::count(space.dimensions(), key, &search::Dimension::key) > 0;
}

} // namespace

void require_free_key(search::Dimension const& dimension) {
    for (auto const* const own : {"run.directory", "run.name", "checkpoint.resume"}) {
        if (dimension.key == own) {
            throw Error(ExitCode::usage, {concat(own, " (", dimension.origin, ")"),
                                          "the search itself sets this key for each trial",
                                          "Remove the key from [space]"});
        }
    }
}

void require_likely_goals(std::vector<search::Goal> const& goals, config::Deck const& deck,
                          search::Space const& space) {
    bool const validates = task::is_played(deck.task) || !trimmed(deck.data.validation).empty() ||
                           varies(space, "data.validation");
    std::vector<std::string> names{"loss", "parameters", "step_ms"};
    auto const kinds = task::metrics_of(deck);
    for (auto const& metric : kinds) {
        names.push_back(metric.name);
    }
    auto const asked = task::asked_metrics(deck);
    for (auto const& goal : goals) {
        auto const* const kind = task::find_metric(kinds, goal.metric);
        if (kind && kind->is_table) {
            static_cast<void>(task::metric_of(deck, "search.goals", goal.metric));
        }
        if (kind && kind->on_request && std::ranges::count(asked, goal.metric) == 0) {
            throw Error(ExitCode::usage,
                        {concat("search.goals names ", goal.metric),
                         "trials measure this metric only where the deck asks for it",
                         concat("Add ", goal.metric, " to task.metrics")});
        }
        bool const needs_none = goal.metric == "parameters" || goal.metric == "step_ms";
        if (!validates && !needs_none) {
            throw Error(
                ExitCode::usage,
                {concat("search.goals names ", goal.metric),
                 "trials measure it on validation data, but the deck names no validation set",
                 "Set data.validation, or use the goals parameters or step_ms"});
        }
        auto const near = std::ranges::count(names, goal.metric) == 0 &&
                                  goal.metric.find('.') == std::string::npos
                              ? nearest_name(goal.metric, names)
                              : std::string();
        if (!near.empty()) {
            throw Error(ExitCode::usage, {concat("search.goals names ", goal.metric),
                                          concat("trials measure ", list_text(names)),
                                          concat("Did you mean ", near, "?")});
        }
    }
}

bool may_be_private(config::Deck const& deck, search::Space const& space) {
    return deck.privacy.is_on() || varies(space, "privacy.noise");
}

void require_shared_states(config::Deck const& deck, search::Space const& space) {
    if (may_be_private(deck, space)) {
        throw Error(ExitCode::usage,
                    {"privacy.noise cannot be combined with search.strategy = pbt",
                     "a trial continues from the state of another trial with other values, but "
                     "epsilon holds only for a run with an unchanged deck",
                     "Choose another search.strategy, or remove privacy.noise"});
    }
    constexpr std::array<std::string_view, 11> harmless{
        "model.dropout",     "model.activation",     "model.bound",     "model.norm-epsilon",
        "model.rotary-base", "model.rotary-scaling", "model.attention", "model.documents",
        "model.weights",     "model.weights-match",  "model.lora-alpha"};
    auto const kinds = nn::model_kinds();
    bool const built_in = std::ranges::count(kinds, deck.model.name, &nn::ModelKind::name) > 0;
    for (auto const& dimension : space.dimensions()) {
        bool const other_model = dimension.key == "model.name" ||
                                 dimension.key == "quantise.aware" ||
                                 (built_in && dimension.key.starts_with("model.") &&
                                  std::ranges::count(harmless, dimension.key) == 0);
        if (other_model && dimension.levels() != 1) {
            throw Error(ExitCode::usage,
                        {concat(dimension.key, " (", dimension.origin,
                                ") cannot be searched with search.strategy = pbt"),
                         "a trial continues from the state of another trial, so all trials need "
                         "the same model",
                         "Give this key one value, or choose another search.strategy"});
        }
    }
}

} // namespace lockstep::trials
