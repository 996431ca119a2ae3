#include "aliases.hpp"

#include <algorithm>
#include <array>
#include <numeric>
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
bool returns_argument(c10::OperatorHandle const& op) {
    constexpr std::array<std::string_view, 6> names{
        "aten::alpha_dropout",         "aten::broadcast_tensors", "aten::dropout",
        "aten::feature_alpha_dropout", "aten::feature_dropout",   "aten::type_as"};
    return std::find(names.begin(), names.end(), op.schema().name()) != names.end();
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

/// Batch norm changes its running statistics, which its schema does not say either.
bool changes(c10::Argument const& argument) {
    return (argument.alias_info() != nullptr && argument.alias_info()->isWrite()) ||
           argument.name() == "running_mean" || argument.name() == "running_var";
}

bool changes_anything(Graph const& graph) {
    return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](Node const& node) {
        auto const is_nested = [](Argument const& each) {
            return each.graph && changes_anything(*each.graph);
        };
        return (node.op && std::any_of(node.op->schema().arguments().begin(),
                                       node.op->schema().arguments().end(), changes)) ||
               std::any_of(node.arguments.begin(), node.arguments.end(), is_nested);
    });
}

bool may_change(Node const& node) {
    return std::any_of(node.arguments.begin(), node.arguments.end(), [](Argument const& each) {
        return each.graph && changes_anything(*each.graph);
    });
}

} // namespace

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

Aliases::Aliases(Graph const& graph) : above_(graph.slots) {
    std::iota(above_.begin(), above_.end(), 0);
    for (auto const& node : graph.nodes) {
        note(node);
    }
}

std::size_t Aliases::memory_of(std::size_t slot) const {
    while (above_[slot] != slot) {
        slot = above_[slot];
    }
    return slot;
}

Slots Aliases::changed_by(Node const& node) {
    Slots changed;
    for (std::size_t at = 0; at < node.arguments.size(); ++at) {
        bool const written =
            node.op ? changes(node.op->schema().arguments()[at]) : may_change(node);
        if (written) {
            add_slots(node.arguments[at], changed);
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
    for (auto const& result : node.results) {
        for (std::size_t at = 0; at < node.arguments.size(); ++at) {
            auto const place = static_cast<std::size_t>(&result - node.results.data());
            bool const joined =
                !node.op || returns_argument(*node.op) ||
                share(node.op->schema().arguments()[at], node.op->schema().returns()[place]);
            if (joined) {
                join(slots_of(result), slots_of(node.arguments[at]));
            }
        }
    }
}

} // namespace lockstep::program
