#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::program {

struct Graph;

/// An argument of a node: a constant, the value of a slot, the device of the run, a list of them,
/// or a graph.
struct Argument {
    enum class Kind { constant, slot, device, list, graph };
    Kind kind = Kind::constant;
    c10::IValue constant;
    std::size_t slot = 0;
    bool as_tensor = false; ///< a number where the operator wants a tensor
    std::vector<Argument> items{};
    c10::TypePtr element{}; ///< of a list
    std::shared_ptr<Graph const> graph{};
};

/// Where a result of a node goes; a list of tensors goes to a slot each.
struct Result {
    bool is_list = false;
    std::vector<std::optional<std::size_t>> slots{}; ///< nothing: not used
};

/// A function that runs instead of an operator. As in callBoxed, the arguments are on the stack,
/// and the results are left there.
using Replacement = std::function<void(std::vector<c10::IValue>&)>;

struct Node {
    std::string target;                    ///< its name in Python, "torch.ops.aten.relu.default"
    std::optional<c10::OperatorHandle> op; ///< nothing: a calculation of sizes, or a nested graph
    std::vector<Argument> arguments{};
    std::vector<Result> results{};
    std::vector<std::size_t> last_uses{}; ///< slots that no later node needs
    std::string origin{};                 ///< the line of Python that made it; perhaps empty
    std::string module{};                 ///< the path of its module in Python, "layers.0.norm"
    std::shared_ptr<Replacement const> instead{}; ///< of the operator; may be null
};

struct Graph {
    std::size_t slots = 0;
    std::vector<std::size_t> inputs{};
    std::vector<Node> nodes{};
    std::vector<Argument> outputs{};
};

/// Notes with each node the slots that it uses last, so that memory is freed early, and drops
/// results that no node uses.
void find_last_uses(Graph& graph);

/// A list of the elements' type.
c10::IValue list_of(c10::TypePtr const& element, std::vector<c10::IValue> const& items);
/// A number as a tensor that takes part in the promotion of types as a number does.
c10::IValue number_as_tensor(c10::IValue const& value);

} // namespace lockstep::program
