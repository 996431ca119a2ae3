#include "base/text.hpp"
#include "deploy/graph.hpp"

#include <algorithm>

namespace lockstep::deploy {

namespace {

class Quantisers {
  public:
    explicit Quantisers(Graph& graph) : graph_(graph), nodes_(graph.nodes()) {}

    /// Moves them one node forward at a time, until none moves.
    void move() {
        for (std::size_t at = 0; at < nodes_.size();) {
            at = nodes_[at].kind == "QuantizeLinear" && moved(at) ? 0 : at + 1;
        }
        graph_.replace_nodes(nodes_);
    }

  private:
    using Place = std::vector<Node>::iterator;

    bool only_used_by_one(TensorId id) const {
        std::ptrdiff_t uses = id == graph_.output() ? 1 : 0;
        for (auto const& node : nodes_) {
            uses += std::ranges::count(node.inputs, id);
        }
        return uses == 1;
    }

    bool moved(std::size_t at) {
        auto const quantiser = nodes_.begin() + static_cast<std::ptrdiff_t>(at);
        auto const values = quantiser->inputs.front();
        auto const before = std::ranges::find(nodes_, values, &Node::output);
        if (before == nodes_.end() || !only_used_by_one(values)) {
            return false;
        }
        if (before->kind == "Relu" && quantiser->whole("zero") == 0) {
            quantiser->inputs.front() = before->inputs.front(); // less than 0 becomes 0 anyway
            nodes_.erase(before);
            return true;
        }
        if (before->kind == "MaxPool" || before->kind == "Reshape") {
            exchange(before, quantiser);
            return true;
        }
        if (before->kind == "QuantizedConv" || before->kind == "QuantizedGemm") {
            before->attributes["out_scale"] = quantiser->attributes.at("scale");
            before->attributes["out_zero"] = quantiser->attributes.at("zero");
            before->output = quantiser->output;
            nodes_.erase(quantiser);
            return true;
        }
        return false;
    }

    /// These keep the order of values, and round nothing.
    void exchange(Place before, Place quantiser) {
        auto const from = before->inputs.front();
        graph_.add("QuantizeLinear", {from}, {Element::u8, graph_[from].shape},
                   quantiser->attributes);
        auto const early = graph_.nodes().back();
        before->inputs.front() = early.output;
        before->output = quantiser->output;
        auto const later = *before;
        *before = early;
        *quantiser = later;
    }

    Graph& graph_;
    std::vector<Node> nodes_;
};

} // namespace

void quantise_early(Graph& graph) {
    Quantisers(graph).move();
}

} // namespace lockstep::deploy
