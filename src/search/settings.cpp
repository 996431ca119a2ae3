#include "search/settings.hpp"

#include "base/number.hpp"
#include "base/suggestion.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "search/strategy.hpp"

#include <algorithm>
#include <functional>
#include <set>

namespace lockstep::search {

namespace {

[[noreturn]] void refuse_setting(std::string const& key, config::Written const& written,
                                 std::string const& expected) {
    throw Error(ExitCode::usage,
                {concat("search.", key, " = ", written.value, " (", written.origin, ")"),
                 concat("expected ", expected), "Correct the value"});
}

using Take = std::function<void(std::string const&, config::Written const&)>;

Take whole_between(std::int64_t& into, std::int64_t min, std::int64_t max) {
    return [&into, min, max](std::string const& key, config::Written const& written) {
        auto const number = number_of<std::int64_t>(written.value);
        if (!number || *number < min || *number > max) {
            refuse_setting(key, written, concat("a whole number from ", min, " to ", max));
        }
        into = *number;
    };
}

void take_goals(std::vector<Goal>& goals, std::string const& key, config::Written const& written) {
    goals.clear();
    std::set<std::string> seen;
    for (auto const& text : split(written.value, ',')) {
        auto const blank = text.find(' ');
        auto const name = text.substr(0, blank);
        auto const way = blank == std::string::npos ? "" : std::string(trimmed(text.substr(blank)));
        if ((way != "max" && way != "min") || name.empty() || !seen.insert(name).second) {
            refuse_setting(key, written,
                           "metrics, each once with max or min, such as \"accuracy max, "
                           "parameters min\"");
        }
        goals.push_back({name, way == "max"});
    }
    if (goals.empty() || goals.size() > 8) {
        refuse_setting(key, written, "1 to 8 metrics with max or min");
    }
}

void check_together(Settings const& settings, config::DeckSource const& source) {
    bool const several = settings.goals.size() > 1;
    if (several && settings.strategy != "nsga2" && settings.strategy != "random" &&
        settings.strategy != "grid" && settings.strategy != "sobol") {
        refuse_setting("strategy", source.values().at("search.strategy"),
                       "nsga2, grid, random or sobol, since search.goals has several goals");
    }
}

} // namespace

Settings settings_of(config::DeckSource const& source) {
    Settings settings;
    std::map<std::string, Take> const takes{
        {"strategy",
         [&](auto const& key, auto const& written) {
             if (std::ranges::count(strategy_names(), written.value) == 0) {
                 refuse_setting(key, written, concat("one of ", joined(strategy_names(), ", ")));
             }
             settings.strategy = written.value;
         }},
        {"trials", whole_between(settings.trials, 1, 100'000)},
        {"seed", whole_between(settings.seed, 0, std::int64_t{1} << 62)},
        {"goals",
         [&](auto const& key, auto const& written) { take_goals(settings.goals, key, written); }},
        {"constraints",
         [&](auto const&, auto const& written) {
             settings.constraints = written.value;
             settings.constraints_origin = written.origin;
         }},
        {"grid-points", whole_between(settings.grid_points, 1, 1000)},
        {"reduction", whole_between(settings.reduction, 2, 100)},
        {"minimum-share",
         [&](auto const& key, auto const& written) {
             auto const number = number_of<double>(written.value);
             if (!number || !(*number >= 1e-4 && *number <= 1)) {
                 refuse_setting(key, written, "a number from 0.0001 to 1");
             }
             settings.minimum_share = *number;
         }},
        {"batch", whole_between(settings.batch, 1, 10'000)},
        {"population", whole_between(settings.population, 4, 10'000)},
        {"intervals", whole_between(settings.intervals, 1, 1000)},
        {"ranks-per-trial", whole_between(settings.ranks_per_trial, 1, 1 << 20)},
        {"retries", whole_between(settings.retries, 0, 100)}};
    for (auto const& [key, written] : source.values()) {
        if (key.starts_with("space.")) {
            continue;
        }
        auto const name = key.starts_with("search.") ? key.substr(7) : "";
        auto const found = takes.find(name);
        if (found == takes.end()) {
            std::vector<std::string> names;
            for (auto const& [each, take] : takes) {
                names.push_back(concat("search.", each));
            }
            throw Error(
                ExitCode::usage,
                {concat("unknown key ", key, " (", written.origin, ")"),
                 key.starts_with("search.")
                     ? "[search] has no such key"
                     : "a SPACE file has the sections [search] and [space] only",
                 suggestion(key, names,
                            key.starts_with("search.")
                                ? concat("Choose one of ", joined(names, ", "))
                                : "Move this line into [search] or [space], or remove the line")});
        }
        found->second(name, written);
    }
    check_together(settings, source);
    return settings;
}

} // namespace lockstep::search
