#include "execute.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <ATen/autocast_mode.h>
#include <c10/core/AutogradState.h>
#include <c10/core/GradMode.h>

#include <utility>

#include "sizes.hpp"

namespace lockstep::program {

namespace {

/// torch.autocast of a block.
class AutocastScope {
  public:
    AutocastScope(c10::DeviceType device, at::ScalarType type, bool enabled, bool cache)
        : device_(device), enabled_(at::autocast::is_autocast_enabled(device)),
          cache_(at::autocast::is_autocast_cache_enabled()),
          type_(at::autocast::get_autocast_dtype(device)) {
        at::autocast::set_autocast_enabled(device, enabled);
        at::autocast::set_autocast_dtype(device, type);
        at::autocast::increment_nesting();
        at::autocast::set_autocast_cache_enabled(cache);
    }
    ~AutocastScope() {
        if (at::autocast::decrement_nesting() == 0) {
            at::autocast::clear_cache();
        }
        at::autocast::set_autocast_enabled(device_, enabled_);
        at::autocast::set_autocast_dtype(device_, type_);
        at::autocast::set_autocast_cache_enabled(cache_);
    }
    AutocastScope(AutocastScope const&) = delete;
    AutocastScope& operator=(AutocastScope const&) = delete;

  private:
    c10::DeviceType device_;
    bool enabled_;
    bool cache_;
    at::ScalarType type_;
};

class Execution {
  public:
    Execution(Graph const& graph, std::vector<c10::IValue> inputs, c10::Device device)
        : graph_(graph), device_(device), slots_(graph.slots) {
        for (std::size_t at = 0; at < graph.inputs.size(); ++at) {
            slots_[graph.inputs[at]] = std::move(inputs.at(at));
        }
    }

    std::vector<c10::IValue> run() {
        for (auto const& node : graph_.nodes) {
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
            node.op->callBoxed(results_);
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

} // namespace

std::vector<c10::IValue> execute(Graph const& graph, std::vector<c10::IValue> inputs,
                                 c10::Device device) {
    return Execution(graph, std::move(inputs), device).run();
}

} // namespace lockstep::program
