#include "channel_choice.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "optimizer/prune_mask.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace lockstep::train {

namespace {

/// Channels of a layer that go together.
struct Lot {
    std::vector<std::size_t> channels;
    std::size_t layer = 0;
    double score = 0;
    bool is_last = false; ///< of its layer: it stays
};

/// The sum of the scores of all weights that go with each channel.
std::vector<double> scores_of(ChannelGraph const& graph, Layout const& layout,
                              std::span<float const> scores) {
    std::map<std::string, ParameterRange const*> entries;
    for (auto const& entry : layout.entries) {
        entries[entry.name] = &entry;
    }
    std::vector<double> sums(graph.channels().size(), 0);
    for (auto const& tensor : graph.tensors()) {
        auto const found = entries.find(tensor.name);
        if (found == entries.end()) {
            continue; // a buffer
        }
        auto const& entry = *found->second;
        for (std::size_t extent = 0; extent < tensor.shape.size(); ++extent) {
            auto const inner =
                std::accumulate(tensor.shape.begin() + static_cast<std::ptrdiff_t>(extent) + 1,
                                tensor.shape.end(), std::int64_t{1}, std::multiplies<>());
            auto const& channels = tensor.channels[extent];
            for (std::int64_t i = 0; !channels.empty() && i < entry.count; ++i) {
                auto const index = static_cast<std::size_t>(i / inner % tensor.shape[extent]);
                if (auto const channel = channels[index]; channel != ChannelTensor::none) {
                    sums[static_cast<std::size_t>(channel)] +=
                        static_cast<double>(scores[static_cast<std::size_t>(entry.first + i)]);
                }
            }
        }
    }
    return sums;
}

/// Channels that no pattern of prune.except keeps.
std::vector<char> removable(config::Prune const& prune, ChannelGraph const& graph,
                            Layout const& layout) {
    std::vector<char> free(graph.channels().size(), 1);
    for (auto const index : exempt_from_pruning(prune, layout)) {
        for (std::size_t c = 0; c < free.size(); ++c) {
            for (auto const& place : graph.channels()[c].places) {
                if (graph.tensors()[place.tensor].name == layout.entries[index].name) {
                    free[c] = 0;
                }
            }
        }
    }
    return free;
}

/// In the order in which they go.
std::vector<Lot> lots_of(config::Prune const& prune, ChannelGraph const& graph,
                         std::vector<char> const& free, std::vector<double> const& scores) {
    std::vector<std::vector<std::size_t>> layers(graph.layers());
    for (std::size_t c = 0; c < free.size(); ++c) {
        if (free[c] != 0) {
            layers[graph.channels()[c].layer].push_back(c);
        }
    }
    std::vector<Lot> lots;
    for (std::size_t layer = 0; layer < layers.size(); ++layer) {
        auto& members = layers[layer];
        std::ranges::stable_sort(members, {}, [&](std::size_t c) { return scores[c]; });
        auto const sum = std::accumulate(members.begin(), members.end(), 0.0,
                                         [&](double all, auto c) { return all + scores[c]; });
        auto const mean = sum > 0 ? sum / static_cast<double>(members.size()) : 1;
        auto const multiple = static_cast<std::size_t>(prune.multiple);
        auto size = members.size() % multiple == 0 ? multiple : members.size() % multiple;
        for (std::size_t at = 0; at < members.size(); at += std::exchange(size, multiple)) {
            Lot lot{{members.begin() + static_cast<std::ptrdiff_t>(at),
                     members.begin() + static_cast<std::ptrdiff_t>(at + size)},
                    layer,
                    0,
                    at + size == members.size()};
            for (auto const c : lot.channels) {
                lot.score += scores[c] / mean / static_cast<double>(size);
            }
            if (prune.scope == "layer") {
                lot.score = static_cast<double>(at + size) / static_cast<double>(members.size());
            }
            lots.push_back(std::move(lot));
        }
    }
    std::ranges::stable_sort(lots, {}, &Lot::score);
    return lots;
}

} // namespace

std::vector<char> kept_channels(config::Prune const& prune, ChannelGraph const& graph,
                                Layout const& layout, std::span<float const> scores, double macs) {
    std::vector<char> kept(graph.channels().size(), 1);
    auto const lots =
        lots_of(prune, graph, removable(prune, graph, layout), scores_of(graph, layout, scores));
    auto left = graph.macs(kept);
    for (auto lot = lots.begin(); left > macs && lot != lots.end(); ++lot) {
        if (!lot->is_last) {
            std::ranges::for_each(lot->channels, [&](auto c) { kept[c] = 0; });
            left = graph.macs(kept);
        }
    }
    if (left > macs) {
        throw Error(
            ExitCode::usage,
            {concat("prune.target = ", prune.target, " cannot be met"),
             concat("even with every removable channel removed, ", static_cast<std::int64_t>(left),
                    " multiply-adds per sample remain, but the target is ",
                    static_cast<std::int64_t>(macs),
                    graph.barriers().empty()
                        ? ""
                        : concat(". Channels that reach these operators cannot be removed: ",
                                 list_text({graph.barriers().begin(), graph.barriers().end()}))),
             graph.channels().size() == graph.layers()
                 ? "Set prune.pattern to none, because this model has no channels that can be "
                   "removed"
                 : "Raise prune.target, lower prune.multiple, or exempt fewer weights in "
                   "prune.except"});
    }
    return kept;
}

std::vector<char> all_but_one_of_each(config::Prune const& prune, ChannelGraph const& graph,
                                      Layout const& layout) {
    auto const free = removable(prune, graph, layout);
    std::vector<char> kept(free.size(), 1);
    std::vector<std::size_t> seen(graph.layers(), 0);
    for (std::size_t c = 0; c < free.size(); ++c) {
        if (free[c] != 0 && ++seen[graph.channels()[c].layer] == 2) { // the first is kept anyway
            kept[c] = 0;
        }
    }
    return kept;
}

} // namespace lockstep::train
