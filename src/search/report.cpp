#include "search/report.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "search/importance.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <set>

namespace lockstep::search {

namespace {

std::string number_text(double value) {
    return fmt::format("{:.6g}", value);
}

/// One value, or "-" where it is not there.
std::string metric_text(Outcome const& outcome, std::string const& metric) {
    auto const found = outcome.metrics.find(metric);
    return found == outcome.metrics.end() ? "-" : number_text(found->second);
}

std::string table_of(Study const& study) {
    std::vector<std::string> heads{"trial"};
    for (auto const& goal : study.settings().goals) {
        heads.push_back(goal.metric);
    }
    std::ranges::copy(std::vector<std::string>{"part of the run", "step", "parent"},
                      std::back_inserter(heads));
    for (auto const& dimension : study.space().dimensions()) {
        heads.push_back(dimension.key);
    }
    auto text = markdown_row(heads) + markdown_row(std::vector<std::string>(heads.size(), "---"));
    for (std::size_t at = 0; at < study.trials().size(); ++at) {
        auto const& trial = study.trials()[at];
        auto const* const newest = trial.newest();
        std::vector<std::string> cells{std::to_string(at + 1)};
        for (auto const& goal : study.settings().goals) {
            cells.push_back(newest == nullptr   ? "open"
                            : newest->code != 0 ? concat("failed (", newest->code, ")")
                                                : metric_text(*newest, goal.metric));
        }
        cells.push_back(newest == nullptr ? "-" : concat(fixed(100 * newest->share, 0), " %"));
        cells.push_back(newest == nullptr ? "-" : std::to_string(newest->step));
        cells.push_back(trial.parent < 0 ? "-" : std::to_string(trial.parent + 1));
        for (auto const& dimension : study.space().dimensions()) {
            auto const found = trial.values.find(dimension.key);
            cells.push_back(found == trial.values.end() ? "-" : found->second);
        }
        text += markdown_row(cells);
    }
    return text;
}

/// Why trials failed; nothing where none did.
std::string failures_text(Study const& study) {
    std::string rows;
    for (std::size_t at = 0; at < study.trials().size(); ++at) {
        auto const* const newest = study.trials()[at].newest();
        if (newest != nullptr && newest->code != 0) {
            auto message = newest->message.empty() ? "not known" : newest->message;
            std::ranges::replace_if(
                message, [](char c) { return c == '\n' || c == '|'; }, ' '); // ends a table's cell
            rows += markdown_row({std::to_string(at + 1), std::to_string(newest->code), message});
        }
    }
    return rows.empty()
               ? ""
               : concat("\n## Failed trials\n\n", markdown_row({"trial", "exit code", "reason"}),
                        markdown_row({"---", "---", "---"}), rows);
}

std::string best_text(Study const& study) {
    auto const best = study.best();
    if (best.empty()) {
        return "No trial has a result yet.\n";
    }
    std::string text;
    for (auto const trial : best) {
        std::vector<std::string> values;
        for (auto const& goal : study.settings().goals) {
            auto const& outcome = *study.trials()[static_cast<std::size_t>(trial)].newest();
            values.push_back(concat(goal.metric, " ", metric_text(outcome, goal.metric)));
        }
        text += concat("- trial ", trial + 1, ": ", joined(values, ", "), "\n");
    }
    return text;
}

std::string importance_text(Study const& study) {
    auto const importance = importance_of_keys(study);
    std::string text = markdown_row({"key", "importance"}) + markdown_row({"---", "---"});
    for (std::size_t at = 0; at < study.space().dimensions().size(); ++at) {
        text +=
            markdown_row({study.space().dimensions()[at].key,
                          importance.empty() ? "-" : concat(fixed(100 * importance[at], 1), " %")});
    }
    return text;
}

/// What ranks used, over all starts that came to an end.
struct Used {
    double processor_s = 0;
    double joules = 0;
    bool has_energy = false;
};

Used used_by(Study const& study) {
    Used used;
    for (auto const& note : study.notes()) {
        auto const found = note.find("resources");
        if (note.value("event", "") != "usage" || found == note.end() || !found->is_object()) {
            continue;
        }
        used.processor_s += found->value("user_s", 0.0) + found->value("system_s", 0.0);
        for (char const* const key : {"processor_joules", "device_joules"}) {
            used.joules += found->value(key, 0.0);
            used.has_energy = used.has_energy || found->contains(key);
        }
    }
    return used;
}

std::string used_energy(Used const& used, std::optional<double> carbon) {
    if (!used.has_energy) {
        return carbon ? "energy and CO2 not measured" : "energy not measured";
    }
    auto const text = concat("energy ", energy_text(used.joules));
    return carbon ? concat(text, ", ", carbon_text(used.joules, *carbon), " CO2 at ",
                           fixed(*carbon, 0), " g/kWh")
                  : text;
}

std::string cost_text(Study const& study, std::optional<double> carbon) {
    std::int64_t steps = 0;
    double all = 0;
    double busy = 0;
    for (auto const& trial : study.trials()) {
        steps += trial.newest() == nullptr ? 0 : trial.newest()->step;
    }
    for (auto const& note : study.notes()) {
        if (note.value("event", "") == "usage") {
            all += note.value("rank_seconds", 0.0);
            busy += note.value("busy_rank_seconds", 0.0);
        }
    }
    return concat("Steps of all trials: ", count_text(steps),
                  ". Time of all ranks, over all starts that ended: ", duration_text(all),
                  ", of which ", all > 0 ? fixed(100 * (1 - busy / all), 1) : "0",
                  " % without a trial; ", fixed(used_by(study).processor_s / 3600, 3),
                  " core-hours, ", used_energy(used_by(study), carbon), ".\n");
}

/// The trial's deck, but for what belongs to the trial alone.
void write_best(Study const& study, std::filesystem::path const& directory) {
    auto const best = study.best();
    auto const deck = best.empty() ? std::filesystem::path()
                                   : directory / trial_directory(best.front()) / "deck.ini";
    if (best.empty() || !std::filesystem::is_regular_file(deck)) {
        return;
    }
    std::string text =
        concat("# Trial ", best.front() + 1, " of the search in ", directory.string(), "\n");
    std::string section;
    for (auto const& line : split(read_text(deck), '\n')) {
        if (line.starts_with("[")) {
            section = line;
        }
        bool const own =
            section == "[run]" && (line.starts_with("name = ") || line.starts_with("directory = "));
        bool const resumes = section == "[checkpoint]" && line.starts_with("resume = ");
        if (!own && !resumes) {
            text += line + "\n";
        }
    }
    write_text_durably(directory / "best.ini", text);
}

} // namespace

std::string write_report(Study const& study, std::filesystem::path const& directory,
                         ReportOptions const& options) {
    std::string shown;
    for (auto const& picture : options.pictures) {
        shown +=
            concat("![", std::filesystem::path(picture).stem().string(), "](", picture, ")\n\n");
    }
    bool const several = study.settings().goals.size() > 1;
    auto const text = concat(
        "# Search ", directory.filename().string(), "\n\nStrategy: ", study.settings().strategy,
        study.is_finished() ? "" : ", not finished", "\n\n## ",
        several ? "Pareto front" : "Best trial", "\n\n", best_text(study), "\n", shown,
        "## Importance of keys\n\nPermutation importance on a random forest, for ",
        study.settings().goals.front().metric, ".\n\n", importance_text(study), "\n## Cost\n\n",
        cost_text(study, options.carbon), "\n## Trials\n\n", table_of(study), failures_text(study));
    write_text_durably(directory / "search.md", text);
    write_best(study, directory);
    return text;
}

} // namespace lockstep::search
