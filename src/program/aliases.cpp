#include "program/aliases.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <string_view>

namespace lockstep::program {

namespace {

void add_slots(Argument const& argument, Slots& slots) {
    if (argument.kind == Argument::Kind::slot) {
        slots.push_back(argument.slot);
    }
    for (auto const& item : argument.items) {
        add_slots(item, slots);
    }
}

/// May return what it is given, which its schema does not say.
bool returns_argument(c10::FunctionSchema const& schema) {
    constexpr std::array<std::string_view, 6> names{
        "aten::alpha_dropout",         "aten::broadcast_tensors", "aten::dropout",
        "aten::feature_alpha_dropout", "aten::feature_dropout",   "aten::type_as"};
    return std::find(names.begin(), names.end(), schema.name()) != names.end();
}

/// Whether a result may be a view of an argument. A list is said to be one of something.
bool share(c10::Argument const& argument, c10::Argument const& result) {
    auto const* const a = argument.alias_info();
    auto const* const b = result.alias_info();
    bool const is_list = result.type()->kind() == c10::TypeKind::ListType;
    return a != nullptr &&
           (is_list || (b != nullptr && std::any_of(a->beforeSets().begin(), a->beforeSets().end(),
                                                    [&](auto const& set) {
                                                        return b->beforeSets().contains(set);
                                                    })));
}

} // namespace

/// Batch norm changes its running statistics, which its schema does not say either.
bool is_changed(c10::Argument const& argument) {
    return (argument.alias_info() != nullptr && argument.alias_info()->isWrite()) ||
           argument.name() == "running_mean" || argument.name() == "running_var";
}

bool may_share(c10::FunctionSchema const& schema, std::size_t argument, std::size_t result) {
    return returns_argument(schema) ||
           (result < schema.returns().size() &&
            share(schema.arguments()[argument], schema.returns()[result]));
}

Slots slots_of(Argument const& argument) {
    Slots slots;
    add_slots(argument, slots);
    return slots;
}

Slots slots_of(Result const& result) {
    Slots slots;
    for (auto const& slot : result.slots) {
        if (slot) {
            slots.push_back(*slot);
        }
    }
    return slots;
}

Aliases::Aliases(Graph const& graph) : graph_(graph), above_(graph.slots) {
    std::iota(above_.begin(), above_.end(), 0);
    for (auto const& node : graph.nodes) {
        changes_.emplace_back();
        note(node);
    }
}

std::size_t Aliases::memory_of(std::size_t slot) const {
    while (above_[slot] != slot) {
        slot = above_[slot];
    }
    return slot;
}

std::map<std::size_t, Node const*> Aliases::changed_inputs() const {
    std::map<std::size_t, Node const*> by_memory;
    for (auto const& changes : changes_) {
        for (auto const& [slot, by] : changes) {
            by_memory.try_emplace(memory_of(slot), by);
        }
    }
    std::map<std::size_t, Node const*> changed;
    for (std::size_t at = 0; at < graph_.inputs.size(); ++at) {
        if (auto const found = by_memory.find(memory_of(graph_.inputs[at]));
            found != by_memory.end()) {
            changed[at] = found->second;
        }
    }
    return changed;
}

void Aliases::join(Slots const& a, Slots const& b) {
    for (auto const each : a) {
        for (auto const other : b) {
            above_[memory_of(each)] = memory_of(other);
        }
    }
}

void Aliases::note(Node const& node) {
    for (std::size_t at = 0; at < node.arguments.size(); ++at) {
        auto const& argument = node.arguments[at];
        if (argument.graph) {
            note_nested(node, *argument.graph, at + 1);
        } else if (node.op && is_changed(node.op->schema().arguments()[at])) {
            for (auto const slot : slots_of(argument)) {
                changes_.back().push_back({slot, &node});
            }
        }
    }
    for (std::size_t place = 0; node.op && place < node.results.size(); ++place) {
        for (std::size_t at = 0; at < node.arguments.size(); ++at) {
            if (may_share(node.op->schema(), at, place)) {
                join(slots_of(node.results[place]), slots_of(node.arguments[at]));
            }
        }
    }
}

/// The nested graph's inputs are the arguments from `first` on; its outputs are a list, or one
/// each.
void Aliases::note_nested(Node const& node, Graph const& nested, std::size_t first) {
    Aliases const inner(nested);
    auto const given = [&](std::size_t input) {
        auto const at = first + input;
        return at < node.arguments.size() ? slots_of(node.arguments[at]) : Slots();
    };
    for (auto const& [input, by] : inner.changed_inputs()) {
        for (auto const slot : given(input)) {
            changes_.back().push_back({slot, by});
        }
    }
    std::map<std::size_t, Slots> holders; // of the nested graph's memory, here
    for (std::size_t input = 0; input < nested.inputs.size(); ++input) {
        auto& slots = holders[inner.memory_of(nested.inputs[input])];
        auto const own = given(input);
        slots.insert(slots.end(), own.begin(), own.end());
    }
    std::vector<std::optional<std::size_t>> results;
    for (auto const& result : node.results) {
        results.insert(results.end(), result.slots.begin(), result.slots.end());
    }
    for (std::size_t output = 0; output < std::min(results.size(), nested.outputs.size());
         ++output) {
        for (auto const slot : results[output] ? slots_of(nested.outputs[output]) : Slots()) {
            holders[inner.memory_of(slot)].push_back(*results[output]);
        }
    }
    for (auto const& [memory, slots] : holders) {
        for (std::size_t at = 1; at < slots.size(); ++at) {
            join({slots[0]}, {slots[at]});
        }
    }
}

} // namespace lockstep::program
