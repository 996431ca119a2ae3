#pragma once

#include "batches/workload.hpp"
#include "lockstep/config/deck.hpp"

#include <torch/types.h>

#include <string>

namespace lockstep::train {

/// What decides whether a run's passes of forward and backward are recorded as graphs.
struct GraphFacts {
    config::Deck const& deck; ///< settled
    int ranks = 1;
    torch::Device device;
    Workload const* work = nullptr; ///< null: not open yet, and taken for one that can be recorded
};

/// Whether they are, by run.graphs and where a graph is exact: the only rule. Batches that turn out
/// to have no graph run eagerly all the same.
bool uses_graphs(GraphFacts const& facts);

/// That decision and its reason, for people; empty where there is nothing to decide: with
/// run.graphs = false, and on a CPU with run.graphs = auto.
std::string graphs_text(GraphFacts const& facts);

} // namespace lockstep::train
