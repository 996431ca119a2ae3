#include "optimizer/prune_mask.hpp"

#include "base/text.hpp"
#include "config/kept_weights.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cmath>
#include <fnmatch.h>
#include <numeric>

namespace lockstep::train {

namespace {

/// Inputs of a weight, which groups lie along.
std::int64_t inputs_of(ParameterRange const& entry) {
    return entry.shape[1];
}

bool is_exempt(std::vector<std::string> const& patterns, ParameterRange const& entry) {
    return std::ranges::any_of(patterns, [&](auto const& pattern) {
        return ::fnmatch(pattern.c_str(), entry.name.c_str(), 0) == 0;
    });
}

/// Removes the `count` lowest scores of the entries, in the order of the arena where they tie.
void remove_lowest(PruneMask& mask, std::vector<ParameterRange const*> const& entries,
                   std::span<float const> scores, std::int64_t count) {
    if (count <= 0) {
        return;
    }
    std::vector<float> all;
    for (auto const* const entry : entries) {
        auto const part = scores.subspan(static_cast<std::size_t>(entry->first),
                                         static_cast<std::size_t>(entry->count));
        all.insert(all.end(), part.begin(), part.end());
    }
    std::nth_element(all.begin(), all.begin() + (count - 1), all.end());
    auto const highest = all[static_cast<std::size_t>(count - 1)];
    auto ties = count - std::ranges::count_if(all, [&](float each) { return each < highest; });
    for (auto const* const entry : entries) {
        for (auto at = entry->first; at < entry->first + entry->count; ++at) {
            auto const score = scores[static_cast<std::size_t>(at)];
            bool const goes = score < highest || (score == highest && ties > 0);
            ties -= score == highest && goes ? 1 : 0;
            mask.removed[static_cast<std::size_t>(at)] = goes ? 1 : 0;
        }
    }
    mask.count += count;
}

void remove_of_groups(PruneMask& mask, ParameterRange const& entry, std::span<float const> scores,
                      config::KeptWeights const& pattern) {
    auto const inputs = inputs_of(entry);
    auto const groups = inputs / pattern.group;
    auto const inner = entry.count / (entry.shape[0] * inputs); // places of a kernel
    std::vector<std::size_t> group(static_cast<std::size_t>(pattern.group));
    for (std::int64_t output = 0; output < entry.shape[0]; ++output) {
        for (std::int64_t at = 0; at < groups * inner; ++at) {
            auto const input = at / inner * pattern.group;
            for (std::int64_t i = 0; i < pattern.group; ++i) {
                group[static_cast<std::size_t>(i)] = static_cast<std::size_t>(
                    entry.first + (output * inputs + input + i) * inner + at % inner);
            }
            std::ranges::stable_sort(group, {}, [&](std::size_t each) { return scores[each]; });
            for (std::int64_t i = 0; i < pattern.group - pattern.kept; ++i) {
                mask.removed[group[static_cast<std::size_t>(i)]] = 1;
                ++mask.count;
            }
        }
    }
    mask.candidates += entry.shape[0] * groups * inner * pattern.group;
}

void require_rest(config::Prune const& prune, ParameterRange const& entry, PruneMask const& mask) {
    auto const first = mask.removed.begin() + entry.first;
    if (std::find(first, first + entry.count, 0) == first + entry.count) {
        throw Error(ExitCode::usage, {concat("prune.sparsity = ", prune.sparsity, " cannot be met"),
                                      concat("all ", entry.count, " weights of ", entry.name,
                                             " would be removed, so nothing would pass that layer"),
                                      "Lower prune.sparsity, set prune.scope = layer, or name that "
                                      "parameter in prune.except"});
    }
}

} // namespace

std::vector<std::size_t> exempt_from_pruning(config::Prune const& prune, Layout const& layout) {
    auto const exempt =
        prune.except == "none" ? std::vector<std::string>{} : split(prune.except, ',');
    for (auto const& each : exempt) {
        if (std::ranges::none_of(layout.entries, [&](ParameterRange const& entry) {
                return is_exempt({each}, entry);
            })) {
            throw Error(ExitCode::usage,
                        {concat("prune.except = ", each, " matches no parameter"),
                         concat("parameters have names such as ", layout.entries.back().name),
                         "Set prune.except to none, or to patterns such as *.output.weight"});
        }
    }
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < layout.entries.size(); ++i) {
        if (is_exempt(exempt, layout.entries[i])) {
            found.push_back(i);
        }
    }
    return found;
}

std::vector<std::size_t> pruned_entries(config::Prune const& prune, Layout const& layout) {
    auto const pattern = config::kept_weights(prune.pattern);
    auto const exempt = exempt_from_pruning(prune, layout);
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < layout.entries.size(); ++i) {
        auto const& entry = layout.entries[i];
        bool const fits = entry.trained && entry.shape.size() > 1 && entry.count > 0 &&
                          std::ranges::find(exempt, i) == exempt.end() &&
                          (!pattern || inputs_of(entry) >= pattern->group);
        if (fits) {
            found.push_back(i);
        }
    }
    if (found.empty()) {
        throw Error(
            ExitCode::usage,
            {concat("prune.pattern = ", prune.pattern, " cannot be met"),
             "every weight is exempt or not trained, or has too few inputs for this pattern",
             "Choose another pattern, or exempt fewer weights in prune.except"});
    }
    return found;
}

PruneMask prune_mask(config::Prune const& prune, Layout const& layout,
                     std::span<float const> scores, double share) {
    PruneMask mask{std::vector<char>(static_cast<std::size_t>(layout.size), 0)};
    std::vector<ParameterRange const*> entries;
    for (auto const index : pruned_entries(prune, layout)) {
        entries.push_back(&layout.entries[index]);
    }
    if (auto const pattern = config::kept_weights(prune.pattern)) {
        for (auto const* const entry : entries) {
            remove_of_groups(mask, *entry, scores, *pattern);
        }
        return mask;
    }
    auto const remove = [&](std::vector<ParameterRange const*> const& some) {
        auto const count =
            std::accumulate(some.begin(), some.end(), std::int64_t{0},
                            [](auto sum, auto const* entry) { return sum + entry->count; });
        remove_lowest(mask, some, scores, std::llround(share * static_cast<double>(count)));
        mask.candidates += count;
    };
    if (prune.scope == "global") {
        remove(entries);
    } else {
        std::ranges::for_each(entries, [&](auto const* entry) { remove({entry}); });
    }
    for (auto const* const entry : entries) {
        require_rest(prune, *entry, mask);
    }
    return mask;
}

} // namespace lockstep::train
