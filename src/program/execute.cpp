#include "execute.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <ATen/Context.h>
#include <c10/core/AutogradState.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

#include "autocast_scope.hpp"
#include "recompute.hpp"
#include "sizes.hpp"

namespace lockstep::program {

namespace {

class Execution {
  public:
    Execution(Graph const& graph, c10::Device device)
        : graph_(graph), device_(device), slots_(graph.slots) {}

    void give(std::vector<c10::IValue> inputs) {
        for (std::size_t at = 0; at < graph_.inputs.size(); ++at) {
            give(graph_.inputs[at], std::move(inputs.at(at)));
        }
    }
    void give(std::size_t slot, c10::IValue value) { slots_[slot] = std::move(value); }
    c10::IValue const& at(std::size_t slot) const { return slots_[slot]; }

    /// The nodes [first, last).
    void run(std::size_t first, std::size_t last) {
        for (auto place = first; place < last; ++place) {
            auto const& node = graph_.nodes[place];
            results_.clear();
            if (node.op) {
                operate(node);
            } else if (is_calculation(node.target)) {
                results_.push_back(calculate(node.target, values_from(node, 0)));
                give_up(node);
            } else {
                nest(node);
            }
            keep_results(node);
        }
    }

    std::vector<c10::IValue> outputs() const {
        std::vector<c10::IValue> outputs;
        for (auto const& output : graph_.outputs) {
            outputs.push_back(value_of(output));
        }
        return outputs;
    }

  private:
    c10::IValue value_of(Argument const& argument) const {
        switch (argument.kind) {
        case Argument::Kind::slot:
            return argument.as_tensor ? number_as_tensor(slots_[argument.slot])
                                      : slots_[argument.slot];
        case Argument::Kind::device:
            return device_;
        case Argument::Kind::list: {
            std::vector<c10::IValue> items;
            items.reserve(argument.items.size());
            for (auto const& item : argument.items) {
                items.push_back(value_of(item));
            }
            return list_of(argument.element, items);
        }
        case Argument::Kind::constant:
        case Argument::Kind::graph:
            break;
        }
        return argument.constant;
    }
    std::vector<c10::IValue> values_from(Node const& node, std::size_t first) const {
        std::vector<c10::IValue> values;
        for (std::size_t at = first; at < node.arguments.size(); ++at) {
            values.push_back(value_of(node.arguments[at]));
        }
        return values;
    }
    void give_up(Node const& node) {
        for (auto const slot : node.last_uses) {
            slots_[slot] = {};
        }
    }

    void operate(Node const& node) {
        for (auto const& argument : node.arguments) {
            results_.push_back(value_of(argument));
        }
        give_up(node);
        try {
            if (node.instead) {
                (*node.instead)(results_);
            } else {
                node.op->callBoxed(results_);
            }
        } catch (c10::OutOfMemoryError const&) {
            throw;
        } catch (c10::Error const& error) {
            std::string const why = split(error.what_without_backtrace(), '\n').front();
            if (!device_.is_cpu() || why.find("memory") != std::string::npos) {
                throw; // perhaps not of this operator, or not the program's fault
            }
            throw Error(
                ExitCode::usage,
                {concat("operator ", node.target, " of the exported program failed",
                        node.origin.empty() ? "" : concat(" (", node.origin, ")")),
                 why, "Use batches like those that it was exported for, or export it for these"});
        }
    }

    void nest(Node const& node) {
        auto const& given = node.arguments;
        if (node.target.ends_with("set_grad_enabled")) {
            c10::AutoGradMode const mode(given[0].constant.toBool());
            results_ = execute(*given[1].graph, values_from(node, 2), device_);
        } else {
            auto const& [type, enabled, cache] =
                std::tie(given[1].constant, given[2].constant, given[3].constant);
            AutocastScope const scope(
                device_.type(),
                type.isNone() ? at::autocast::get_autocast_dtype(device_.type())
                              : static_cast<at::ScalarType>(type.toInt()),
                enabled.toBool(),
                cache.isNone() ? at::autocast::is_autocast_cache_enabled() : cache.toBool());
            results_ = execute(*given[4].graph, values_from(node, 5), device_);
        }
        give_up(node);
    }

    void keep(std::optional<std::size_t> slot, c10::IValue value) {
        if (slot) {
            slots_[*slot] = std::move(value);
        }
    }
    void keep_results(Node const& node) {
        bool const is_nested = !node.op && node.results.size() == 1 && node.results[0].is_list;
        if (is_nested) { // a graph's outputs, one by one
            for (std::size_t at = 0; at < node.results[0].slots.size(); ++at) {
                keep(node.results[0].slots[at], std::move(results_.at(at)));
            }
            return;
        }
        for (std::size_t at = 0; at < node.results.size(); ++at) {
            auto const& result = node.results[at];
            if (!result.is_list) {
                keep(result.slots.front(), std::move(results_.at(at)));
                continue;
            }
            auto const list = results_.at(at).toTensorVector();
            for (std::size_t item = 0; item < result.slots.size(); ++item) {
                keep(result.slots[item], list.at(item));
            }
        }
    }

    Graph const& graph_;
    c10::Device device_;
    std::vector<c10::IValue> slots_;
    std::vector<c10::IValue> results_;
};

/// What a block needs to run again: the values that it had, random numbers and autocast.
class BlockAgain {
  public:
    BlockAgain(std::shared_ptr<Graph const> graph, Block const& block, Execution const& execution,
               c10::Device device)
        : graph_(std::move(graph)), block_(block), device_(device),
          type_(at::autocast::get_autocast_dtype(device.type())),
          cast_(at::autocast::is_autocast_enabled(device.type())) {
        c10::AutoGradMode const no_grad(false);
        for (auto const slot : block.needed) {
            values_.push_back(execution.at(slot));
            auto& value = values_.back();
            bool const changes =
                std::find(block.changed.begin(), block.changed.end(), slot) != block.changed.end();
            if (value.isTensor() && value.toTensor().defined()) {
                auto const& tensor = value.toTensor();
                value = (changes ? tensor.clone() : tensor.detach())
                            .requires_grad_(tensor.requires_grad());
            }
            versions_.push_back(version_of(value));
        }
        if (block.draws) {
            random_ = generator().get_state();
        }
    }

    void operator()() {
        require_unchanged();
        Execution execution(*graph_, device_);
        for (std::size_t at = 0; at < values_.size(); ++at) {
            execution.give(block_.needed[at], std::move(values_[at]));
        }
        auto const random = block_.draws ? generator().get_state() : at::Tensor();
        if (block_.draws) {
            generator().set_state(random_);
        }
        {
            AutocastScope const autocast(device_.type(), type_, cast_, /*cache=*/false);
            execution.run(block_.first, block_.last);
        }
        if (block_.draws) {
            generator().set_state(random);
        }
    }

  private:
    at::Generator generator() const {
        return at::globalContext().defaultGenerator(device_); // a handle
    }
    static std::uint32_t version_of(c10::IValue const& value) {
        return value.isTensor() && value.toTensor().defined()
                   ? static_cast<std::uint32_t>(value.toTensor()._version())
                   : 0;
    }
    void require_unchanged() const {
        for (std::size_t at = 0; at < values_.size(); ++at) {
            if (version_of(values_[at]) != versions_[at]) {
                auto const& node = graph_->nodes[block_.first];
                throw Error(
                    ExitCode::usage,
                    {"precision.gradient-checkpointing: a block cannot be run again",
                     concat("what it is given was changed in place after it",
                            node.origin.empty() ? "" : concat("; it begins at ", node.origin)),
                     "Do not change that tensor in place, or switch "
                     "precision.gradient-checkpointing off"});
            }
        }
    }

    std::shared_ptr<Graph const> graph_;
    Block block_;
    c10::Device device_;
    at::ScalarType type_;
    bool cast_;
    std::vector<c10::IValue> values_; ///< of the slots that it needs
    std::vector<std::uint32_t> versions_;
    at::Tensor random_;
};

} // namespace

std::vector<c10::IValue> execute(Graph const& graph, std::vector<c10::IValue> inputs,
                                 c10::Device device) {
    Execution execution(graph, device);
    execution.give(std::move(inputs));
    execution.run(0, graph.nodes.size());
    return execution.outputs();
}

std::vector<c10::IValue> execute_in_blocks(std::shared_ptr<Graph const> const& graph,
                                           std::span<Block const> blocks,
                                           std::vector<c10::IValue> inputs, c10::Device device) {
    Execution execution(*graph, device);
    execution.give(std::move(inputs));
    for (auto const& block : blocks) {
        bool const is_last = &block == &blocks.back(); // which backward would run again at once
        if (is_last) {
            execution.run(block.first, block.last);
            continue;
        }
        ActivationsForgotten const forgotten(BlockAgain(graph, block, execution, device));
        execution.run(block.first, block.last);
    }
    return execution.outputs();
}

} // namespace lockstep::program
