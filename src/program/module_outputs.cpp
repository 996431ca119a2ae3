#include "program/module_outputs.hpp"

#include "program/aliases.hpp"

#include <algorithm>
#include <map>
#include <string_view>

namespace lockstep::program {

namespace {

/// The paths of a module and of those around it, from the innermost.
std::vector<std::string_view> with_parents(std::string_view module) {
    constexpr std::size_t max_depth = 100;
    std::vector<std::string_view> paths;
    for (auto end = module.size();
         end != std::string_view::npos && end > 0 && paths.size() < max_depth;
         end = module.rfind('.', end - 1)) {
        paths.push_back(module.substr(0, end));
    }
    return paths;
}

bool is_in(std::string_view node_module, std::string_view module) {
    return node_module.starts_with(module) &&
           (node_module.size() == module.size() || node_module[module.size()] == '.');
}

} // namespace

std::vector<ModuleOutput> module_outputs(Graph const& graph) {
    std::vector<std::vector<std::string const*>> readers(graph.slots); // modules that read a slot
    std::string const nowhere;
    for (auto const& node : graph.nodes) {
        for (auto const& argument : node.arguments) {
            for (auto const slot : slots_of(argument)) {
                readers[slot].push_back(&node.module);
            }
        }
    }
    for (auto const& output : graph.outputs) {
        for (auto const slot : slots_of(output)) {
            readers[slot].push_back(&nowhere);
        }
    }
    std::map<std::string, ModuleOutput> found;
    for (std::size_t at = 0; at < graph.nodes.size(); ++at) {
        auto const& node = graph.nodes[at];
        for (auto const& result : node.results) {
            for (auto const slot : slots_of(result)) {
                for (auto const module : with_parents(node.module)) {
                    if (std::any_of(readers[slot].begin(), readers[slot].end(),
                                    [&](auto const* reader) { return !is_in(*reader, module); })) {
                        std::string const path(module);
                        found[path] = {at, slot, path};
                    }
                }
            }
        }
    }
    std::vector<ModuleOutput> outputs;
    for (auto& [module, output] : found) {
        outputs.push_back(std::move(output));
    }
    std::stable_sort(outputs.begin(), outputs.end(),
                     [](auto const& a, auto const& b) { return a.node < b.node; });
    return outputs;
}

} // namespace lockstep::program
