#include "blocks.hpp"

#include "base/text.hpp"
#include "program/aliases.hpp"
#include "program/operators.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace lockstep::program {

namespace {

bool draws_anything(Node const& node) {
    return (node.op && draws(*node.op)) ||
           std::any_of(node.arguments.begin(), node.arguments.end(), [](Argument const& each) {
               return each.graph && std::any_of(each.graph->nodes.begin(), each.graph->nodes.end(),
                                                draws_anything);
           });
}

/// A place between nodes, and how good a cut there is. Place k is before node k.
struct Place {
    bool allowed = true;
    std::size_t alive = 0;  ///< tensors that cross it
    std::size_t common = 0; ///< modules that both sides are in
};

struct Use {
    std::size_t made = 0; ///< by which node
    std::size_t last = 0; ///< the last that has it
    bool exists = false;
    bool is_tensor = false;
};

/// The uses of the values that nodes make, by their slots.
std::vector<Use> uses_of(Graph const& graph) {
    std::vector<Use> uses(graph.slots);
    for (std::size_t at = 0; at < graph.nodes.size(); ++at) {
        auto const& node = graph.nodes[at];
        for (auto const& argument : node.arguments) {
            for (auto const slot : slots_of(argument)) {
                uses[slot].last = at;
            }
        }
        for (std::size_t result = 0; result < node.results.size(); ++result) {
            bool const is_tensor = node.op && node.op->schema().returns()[result].type()->kind() !=
                                                  c10::TypeKind::IntType;
            for (auto const slot : slots_of(node.results[result])) {
                uses[slot] = {at, at, true, is_tensor};
            }
        }
    }
    return uses;
}

std::size_t common_modules(std::string const& a, std::string const& b) {
    auto const one = split(a, '.');
    auto const other = split(b, '.');
    auto const shorter = static_cast<std::ptrdiff_t>(std::min(one.size(), other.size()));
    return static_cast<std::size_t>(
        std::mismatch(one.begin(), one.begin() + shorter, other.begin()).first - one.begin());
}

/// Memory that is changed is touched, up to the last change, within one block.
void forbid(Graph const& graph, Aliases const& aliases, std::vector<Place>& places) {
    constexpr auto never = static_cast<std::size_t>(-1);
    std::vector<std::size_t> first(graph.slots, never);
    for (std::size_t at = 0; at < graph.nodes.size(); ++at) {
        auto const& node = graph.nodes[at];
        auto const touch = [&](Slots const& slots) {
            for (auto const slot : slots) {
                auto& place = first[aliases.memory_of(slot)];
                place = std::min(place, at);
            }
        };
        for (auto const& argument : node.arguments) {
            touch(slots_of(argument));
        }
        for (auto const& result : node.results) {
            touch(slots_of(result));
        }
        for (auto const& [slot, by] : aliases.changed_by(at)) {
            for (auto place = first[aliases.memory_of(slot)] + 1; place <= at; ++place) {
                places[place].allowed = false;
            }
        }
    }
}

std::vector<Place> places_of(Graph const& graph, Aliases const& aliases) {
    std::vector<Place> places(graph.nodes.size() + 1);
    for (auto const& use : uses_of(graph)) {
        for (auto place = use.made + 1; use.exists && use.is_tensor && place <= use.last; ++place) {
            ++places[place].alive;
        }
    }
    for (std::size_t at = 1; at < graph.nodes.size(); ++at) {
        places[at].common = common_modules(graph.nodes[at - 1].module, graph.nodes[at].module);
    }
    forbid(graph, aliases, places);
    return places;
}

/// Where blocks begin, and the end.
Slots cuts_of(std::vector<Place> const& places) {
    auto const nodes = places.size() - 1;
    auto const count = std::max<std::size_t>(
        1, static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(nodes)))));
    auto const half = nodes / count / 2;
    Slots cuts{0};
    for (std::size_t number = 1; number < count; ++number) {
        auto const ideal = number * nodes / count;
        std::size_t best = 0;
        auto const cost = [&](std::size_t place) {
            auto const away = place > ideal ? place - ideal : ideal - place;
            return std::tuple(places[place].alive, places[place].common, away);
        };
        for (auto place = std::max(ideal - half, cuts.back() + 1); place <= ideal + half; ++place) {
            if (place < nodes && places[place].allowed && (best == 0 || cost(place) < cost(best))) {
                best = place;
            }
        }
        if (best != 0) {
            cuts.push_back(best);
        }
    }
    cuts.push_back(nodes);
    return cuts;
}

Block block_of(Graph const& graph, Aliases const& aliases, std::size_t first, std::size_t last) {
    Block block{first, last};
    std::vector<bool> known(graph.slots, false);
    std::vector<bool> changed(graph.slots, false);
    for (auto at = first; at < last; ++at) {
        auto const& node = graph.nodes[at];
        for (auto const& argument : node.arguments) {
            for (auto const slot : slots_of(argument)) {
                if (!known[slot]) {
                    known[slot] = true;
                    block.needed.push_back(slot);
                }
            }
        }
        for (auto const& [slot, by] : aliases.changed_by(at)) {
            changed[aliases.memory_of(slot)] = true;
        }
        for (auto const& result : node.results) {
            for (auto const slot : slots_of(result)) {
                known[slot] = true;
            }
        }
        block.draws = block.draws || draws_anything(node);
    }
    std::copy_if(block.needed.begin(), block.needed.end(), std::back_inserter(block.changed),
                 [&](std::size_t slot) { return changed[aliases.memory_of(slot)]; });
    return block;
}

} // namespace

std::vector<Block> blocks_of(Graph const& graph) {
    Aliases const aliases(graph);
    auto const cuts = cuts_of(places_of(graph, aliases));
    std::vector<Block> blocks;
    for (std::size_t at = 0; at + 1 < cuts.size(); ++at) {
        blocks.push_back(block_of(graph, aliases, cuts[at], cuts[at + 1]));
    }
    return blocks;
}

} // namespace lockstep::program
