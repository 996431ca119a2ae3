#include "base/suggestion.hpp"
#include "base/text.hpp"
#include "lockstep/nn/registry.hpp"
#include "lockstep/task/task.hpp"

#include <iostream>

#include "../train_side_options.hpp"
#include "commands.hpp"

namespace lockstep::app {

namespace {

void print_keys(std::string const& section, std::vector<config::OwnKey> const& keys) {
    for (auto const& key : keys) {
        std::cout << "    " << section << "." << key.name << " (" << key.default_value << ")  "
                  << key.meaning << "\n";
    }
}

/// The one of these kinds that the command line names, or all.
template <class Kind>
std::vector<Kind> named(std::vector<Kind> kinds, std::string const& what,
                        Options (*table)(NothingTold&), Invocation const& invocation) {
    auto const arguments = positions_of(table, invocation);
    if (arguments.empty()) {
        return kinds;
    }
    std::vector<std::string> names;
    for (auto const& kind : kinds) {
        names.push_back(kind.name);
        if (kind.name == arguments[0]) {
            return {kind};
        }
    }
    throw Error(
        ExitCode::usage,
        {concat("unknown ", what, " ", arguments[0]),
         concat("the ", what, "s are ", list_text(names)),
         suggestion(arguments[0], names, "Name one of them, or leave the name out to list all")});
}

} // namespace

ExitCode models_command(Invocation const& invocation) {
    for (auto const& kind : named(nn::model_kinds(), "model", models_options, invocation)) {
        std::cout << kind.name << ": " << kind.meaning
                  << (kind.any_inputs ? "; accepts any inputs" : "") << "\n";
        print_keys("model", kind.keys);
    }
    return ExitCode::ok;
}

ExitCode tasks_command(Invocation const& invocation) {
    for (auto const& kind : named(task::task_kinds(), "task", tasks_options, invocation)) {
        std::vector<std::string> metrics;
        std::vector<std::string> more;
        for (auto const& metric : kind.metrics) {
            (metric.on_request ? more : metrics).push_back(metric.name);
        }
        std::cout << kind.name << ": " << kind.meaning << "; metrics: " << joined(metrics, ", ")
                  << (more.empty() ? "" : concat("; on request: ", joined(more, ", "))) << "\n";
        print_keys("task", kind.keys);
    }
    return ExitCode::ok;
}

} // namespace lockstep::app
