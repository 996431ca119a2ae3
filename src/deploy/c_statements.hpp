#pragma once

#include "deploy/c_loops.hpp"
#include "deploy/memory_plan.hpp"

#include <set>
#include <string>

namespace lockstep::deploy {

/// The nodes of a graph as statements of C, one sample's values in the memory of a plan.
class CStatements {
  public:
    CStatements(Graph const& graph, MemoryPlan const& plan) : graph_(graph), plan_(plan) {}

    /// Throws  Error 64 for an operator without a C form
    std::string of(Node const& node);

    /// Functions of `c_helpers` that the statements so far call.
    std::set<std::string> const& helpers() const noexcept { return helpers_; }

    std::string pointer(TensorId id) const;

    /// Entries of the array `patch`, int16_t, that the statements so far need.
    std::int64_t patch() const noexcept { return patch_; }

  private:
    std::vector<std::int64_t> extents(TensorId id) const { return extents_of(graph_[id].shape); }
    Operand whole(TensorId id) const;
    Operand along_others(TensorId id, std::int64_t axis) const;
    Operand repeated(TensorId id, std::vector<std::int64_t> const& extents) const;
    std::string element_by_element(Node const& node, std::string const& expression) const;
    std::string expression_of(Node const& node) const;
    std::string convolution_form(Node const& node) const;
    std::string convolution(Node const& node);
    std::string quantiser(Node const& node);
    std::string integer_layer(Node const& node);
    std::string pool(Node const& node);
    std::string norm(Node const& node) const;
    std::string product(Node const& node);
    std::string along_axis(Node const& node);
    std::string layer_norm(Node const& node);
    std::string reduction(Node const& node) const;
    std::string arg_max(Node const& node) const;
    std::string gather_elements(Node const& node) const;
    std::string scatter_elements(Node const& node) const;
    std::string grid_sample(Node const& node);
    std::string transpose(Node const& node) const;
    std::string slice(Node const& node) const;
    std::string join(Node const& node) const;
    std::string gather(Node const& node) const;
    std::string pad(Node const& node) const;
    std::string resize(Node const& node) const;

    Graph const& graph_;
    MemoryPlan const& plan_;
    std::set<std::string> helpers_;
    std::int64_t patch_ = 0;
};

/// The text of a helper.
std::string c_helper(std::string const& name);

} // namespace lockstep::deploy
