#include "deploy/graph.hpp"

#include <cmath>
#include <set>

namespace lockstep::deploy {

namespace {

/// How often each tensor is read; the output once more.
std::vector<int> uses_in(Graph const& graph) {
    std::vector<int> uses(graph.tensors().size());
    for (auto const& node : graph.nodes()) {
        for (auto const id : node.inputs) {
            ++uses[id];
        }
    }
    ++uses[graph.output()];
    return uses;
}

/// The convolution with the norm in its weights: w · s and (b - mean) · s + shift, where s is
/// scale / sqrt(variance + epsilon), computed in double precision.
Node folded(Graph& graph, Node const& convolution, Node const& norm) {
    auto const channels = graph[norm.inputs[1]].reals().size();
    auto const epsilon = norm.real("epsilon");
    auto const weights = graph[convolution.inputs[1]].reals();
    std::vector<float> scaled(weights.begin(), weights.end());
    std::vector<float> bias(channels);
    for (std::size_t c = 0; c < channels; ++c) {
        auto const of = [&](std::size_t input) {
            return static_cast<double>(graph[norm.inputs[input]].reals()[c]);
        };
        double const scale = of(1) / std::sqrt(of(4) + epsilon);
        double const before = convolution.inputs.size() > 2
                                  ? static_cast<double>(graph[convolution.inputs[2]].reals()[c])
                                  : 0.0;
        bias[c] = static_cast<float>((before - of(3)) * scale + of(2));
        auto const each = scaled.size() / channels;
        for (std::size_t i = c * each; i < (c + 1) * each; ++i) {
            scaled[i] = static_cast<float>(static_cast<double>(scaled[i]) * scale);
        }
    }
    auto const extents = extents_of(graph[convolution.inputs[1]].shape);
    auto const input = convolution.inputs[0];
    auto const first = graph.reals(scaled, extents);
    auto const second = graph.reals(bias, {static_cast<std::int64_t>(channels)});
    return {"Conv", {input, first, second}, norm.output, convolution.attributes};
}

void fold_norms(Graph& graph) {
    auto const uses = uses_in(graph);
    std::vector<Node> nodes;
    for (auto const& node : std::vector<Node>(graph.nodes())) {
        bool const follows = !nodes.empty() && node.kind == "BatchNormalization" &&
                             nodes.back().kind == "Conv" && nodes.back().output == node.inputs[0] &&
                             uses[nodes.back().output] == 1 &&
                             graph[nodes.back().inputs[1]].constant;
        if (follows) {
            nodes.back() = folded(graph, Node(nodes.back()), node);
        } else {
            nodes.push_back(node);
        }
    }
    graph.replace_nodes(std::move(nodes));
}

void drop_unused(Graph& graph) {
    std::set<TensorId> needed{graph.output()};
    std::vector<Node> kept;
    auto const& nodes = graph.nodes();
    for (auto at = nodes.rbegin(); at != nodes.rend(); ++at) {
        if (needed.contains(at->output)) {
            needed.insert(at->inputs.begin(), at->inputs.end());
            kept.push_back(*at);
        }
    }
    graph.replace_nodes({kept.rbegin(), kept.rend()});
}

} // namespace

void simplify(Graph& graph) {
    fold_norms(graph);
    quantise_early(graph);
    drop_unused(graph);
}

} // namespace lockstep::deploy
