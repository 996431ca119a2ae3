#include "deploy/memory_plan.hpp"

#include <algorithm>
#include <numeric>
#include <set>

namespace lockstep::deploy {

MemoryPlan::MemoryPlan(Graph const& graph)
    : roots_(graph.tensors().size()), last_uses_(graph.tensors().size()),
      places_(graph.tensors().size()) {
    std::iota(roots_.begin(), roots_.end(), 0);
    find_storage(graph);
    find_last_uses(graph);
    std::array<std::vector<Range>, element_types> taken;
    for (std::size_t at = 0; at < graph.nodes().size(); ++at) {
        auto const id = graph.nodes()[at].output;
        if (roots_[id] != id || id == roots_[graph.output()]) {
            continue;
        }
        auto const type = static_cast<std::size_t>(graph[id].element);
        auto const count = (elements(graph[id].shape) + 15) / 16 * 16; // aligned for vectors
        auto const first = claim(taken[type], count, at, last_uses_[id]);
        places_[id] = first;
        sizes_[type] = std::max(sizes_[type], first + count);
    }
}

void MemoryPlan::find_storage(Graph const& graph) {
    for (auto const& node : graph.nodes()) {
        auto const from = node.inputs.front();
        bool const stays = node.kind == "Reshape" && node.output != graph.output();
        if (stays) {
            roots_[node.output] = roots_[from];
        }
    }
}

void MemoryPlan::find_last_uses(Graph const& graph) {
    for (std::size_t at = 0; at < graph.nodes().size(); ++at) {
        auto const& node = graph.nodes()[at];
        last_uses_[roots_[node.output]] = std::max(last_uses_[roots_[node.output]], at);
        for (auto const id : node.inputs) {
            last_uses_[roots_[id]] = at;
        }
    }
}

/// The first gap among what is still needed at `node`.
std::int64_t MemoryPlan::claim(std::vector<Range>& taken, std::int64_t count, std::size_t node,
                               std::size_t last_use) {
    std::erase_if(taken, [&](Range const& range) { return range.last_use < node; });
    std::int64_t first = 0;
    auto at = taken.begin();
    for (; at != taken.end() && at->first - first < count; ++at) {
        first = at->first + at->count;
    }
    taken.insert(at, {first, count, last_use});
    return first;
}

std::optional<std::int64_t> MemoryPlan::place(TensorId id) const {
    return places_[roots_[id]];
}

std::uint64_t MemoryPlan::bytes() const {
    std::uint64_t sum = 0;
    for (auto const element : {Element::f32, Element::i64, Element::u8, Element::boolean}) {
        sum += static_cast<std::uint64_t>(size(element)) * bytes_of(element);
    }
    return sum;
}

Costs costs_of(Graph const& graph) {
    Costs costs;
    costs.peak_bytes = MemoryPlan(graph).bytes();
    std::set<TensorId> constants;
    for (auto const& node : graph.nodes()) {
        for (auto const id : node.inputs) {
            bool const counts =
                graph[id].element == Element::f32 || graph[id].element == Element::i8;
            if (graph[id].constant && counts && constants.insert(id).second) {
                costs.parameters += elements(graph[id].shape);
            }
        }
        auto const made = elements(graph[node.output].shape);
        if (node.kind.ends_with("Conv")) {
            auto const& weights = graph[node.inputs[1]].shape;
            costs.multiplications += made * (elements(weights) / weights.front().count);
        } else if (node.kind == "ConvTranspose") {
            auto const& weights = graph[node.inputs[1]].shape;
            costs.multiplications +=
                elements(graph[node.inputs[0]].shape) * (elements(weights) / weights.front().count);
        } else if (node.kind.ends_with("Gemm") || node.kind == "MatMul") {
            costs.multiplications += made * graph[node.inputs[0]].shape.back().count;
        }
    }
    return costs;
}

} // namespace lockstep::deploy
