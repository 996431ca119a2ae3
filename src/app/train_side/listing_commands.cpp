#include "lockstep/base/text.hpp"
#include "lockstep/nn/registry.hpp"
#include "lockstep/task/task.hpp"

#include <iostream>

#include "commands.hpp"

namespace lockstep::app {

namespace {

void print_keys(std::string const& section, std::vector<config::OwnKey> const& keys) {
    for (auto const& key : keys) {
        std::cout << "    " << section << "." << key.name << " (" << key.default_value << ")  "
                  << key.meaning << "\n";
    }
}

} // namespace

ExitCode models_command(Invocation const&) {
    for (auto const& kind : nn::model_kinds()) {
        std::cout << kind.name << ": " << kind.meaning
                  << (kind.any_inputs ? "; takes any inputs" : "") << "\n";
        print_keys("model", kind.keys);
    }
    return ExitCode::ok;
}

ExitCode tasks_command(Invocation const&) {
    for (auto const& kind : task::task_kinds()) {
        std::vector<std::string> metrics;
        for (auto const& metric : kind.metrics) {
            metrics.push_back(metric.name);
        }
        std::cout << kind.name << ": " << kind.meaning << "; metrics " << joined(metrics, ", ")
                  << "\n";
        print_keys("task", kind.keys);
    }
    return ExitCode::ok;
}

} // namespace lockstep::app
