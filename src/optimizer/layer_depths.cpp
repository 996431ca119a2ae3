#include "optimizer/layer_depths.hpp"

#include "base/number.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

namespace lockstep::train {

namespace {

/// The number of the block that a parameter belongs to, as its name has it.
std::optional<int> block_of(std::string const& name) {
    constexpr std::array<std::string_view, 4> lists{"blocks", "layers", "layer", "h"};
    constexpr std::array<std::string_view, 2> blocks{"block", "encoder_layer_"};
    auto const parts = split(name, '.');
    for (std::size_t i = 0; i < parts.size(); ++i) {
        std::string_view const part = parts[i];
        for (auto const block : blocks) {
            if (part.starts_with(block)) {
                if (auto const number = number_of<int>(part.substr(block.size()))) {
                    return number;
                }
            }
        }
        if (i > 0 && std::ranges::find(lists, parts[i - 1]) != lists.end()) {
            if (auto const number = number_of<int>(part)) {
                return number;
            }
        }
    }
    return std::nullopt;
}

} // namespace

LayerDepths layer_depths(Layout const& layout) {
    auto const& entries = layout.entries; // the last parameter of the model comes first
    std::set<int> numbers;
    std::size_t first = entries.size(); // entry that is of a block
    for (std::size_t i = 0; i < entries.size(); ++i) {
        if (auto const block = block_of(entries[i].name)) {
            numbers.insert(*block);
            first = std::min(first, i);
        }
    }
    if (numbers.empty()) {
        throw Error(ExitCode::usage,
                    {"optimizer.layer-decay has no effect on this model",
                     concat("no name of a parameter, such as ", entries.back().name,
                            ", has the number of a block (blocks.block1, layers.0)"),
                     "Set optimizer.layer-decay = 1, and give parameters their rates with "
                     "optimizer.groups"});
    }
    LayerDepths depths{.of_entry = {}, .last = static_cast<int>(numbers.size()) + 1};
    for (std::size_t i = 0; i < entries.size(); ++i) {
        auto const block = block_of(entries[i].name);
        depths.of_entry.push_back(
            block       ? static_cast<int>(std::distance(numbers.begin(), numbers.find(*block))) + 1
            : i < first ? depths.last
                        : 0);
    }
    return depths;
}

} // namespace lockstep::train
