#include "split.hpp"

#include "base/hash.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace lockstep::import {

namespace {

constexpr std::array<std::string_view, 3> set_names{"train", "validation", "test"};

[[noreturn]] void refuse(std::string const& what, std::string const& why, std::string const& next) {
    throw Error(ExitCode::usage, {what, why, next});
}

void check_shares(std::vector<double> const& shares) {
    double sum = 0;
    bool right = !shares.empty() && shares.size() <= set_names.size();
    for (auto const share : shares) {
        right = right && share >= 0 && share <= 1; // false for NaN, too
        sum += share;
    }
    if (!right || !(std::abs(sum - 1) < 1e-6)) {
        refuse("--split", "shares must be at least 0 and add up to 1",
               "Give the shares of train, validation and test, such as --split 0.8,0.1,0.1");
    }
}

/// Items that stay together.
struct Group {
    std::vector<std::int64_t> items;
    std::map<std::int64_t, double> classes; ///< label and how many items have it
    std::uint64_t draw = 0;                 ///< its place in the drawn order
};

std::vector<Group> groups_of(ImportSource const& source, std::vector<std::int64_t> const& items,
                             SplitOptions const& options) {
    std::map<std::string, std::size_t> place;
    std::vector<Group> groups;
    for (auto const item : items) {
        auto at = groups.size();
        // Of its name in a group, or of its number: not of the other items that are there.
        auto draw = static_cast<std::uint64_t>(item);
        if (options.by_group) {
            auto const name = source.group(item);
            at = place.try_emplace(name, at).first->second;
            draw = hash64(name);
        }
        if (at == groups.size()) {
            groups.push_back({{}, {}, random_key(options.seed, Stream::order, {draw})});
        }
        groups[at].items.push_back(item);
        groups[at].classes[source.label(item)] += 1;
    }
    std::sort(groups.begin(), groups.end(), [](Group const& a, Group const& b) {
        return std::pair(b.items.size(), a.draw) < std::pair(a.items.size(), b.draw);
    });
    return groups;
}

/// Which set each group goes to (after Sechidis, Tsoumakas, Vlahavas, "On the stratification of
/// multi-label data", ECML PKDD 2011: the greatest need first).
std::vector<std::size_t> deal(std::vector<Group> const& groups, std::vector<double> const& shares) {
    std::map<std::int64_t, double> all;
    for (auto const& group : groups) {
        for (auto const& [label, count] : group.classes) {
            all[label] += count;
        }
    }
    std::vector<std::map<std::int64_t, double>> lack(shares.size());
    for (std::size_t s = 0; s < shares.size(); ++s) {
        for (auto const& [label, count] : all) {
            lack[s][label] = count * shares[s];
        }
    }
    std::vector<std::size_t> sets;
    for (auto const& group : groups) {
        std::size_t best = 0;
        double max = -HUGE_VAL;
        for (std::size_t s = 0; s < shares.size(); ++s) {
            double need = 0;
            for (auto const& [label, count] : group.classes) {
                need += lack[s][label] * count / all[label];
            }
            if (shares[s] > 0 && need > max) {
                max = need;
                best = s;
            }
        }
        for (auto const& [label, count] : group.classes) {
            lack[best][label] -= count;
        }
        sets.push_back(best);
    }
    return sets;
}

std::vector<ItemSet> by_shares(ImportSource const& source, std::vector<std::int64_t> const& items,
                               SplitOptions const& options) {
    check_shares(options.shares);
    auto const groups = groups_of(source, items, options);
    auto const dealt = deal(groups, options.shares);
    std::vector<ItemSet> sets(options.shares.size());
    for (std::size_t g = 0; g < groups.size(); ++g) {
        auto& set = sets[dealt[g]];
        set.items.insert(set.items.end(), groups[g].items.begin(), groups[g].items.end());
        set.groups += options.by_group ? 1 : 0;
    }
    for (std::size_t s = 0; s < sets.size(); ++s) {
        sets[s].name = set_names[s];
        std::sort(sets[s].items.begin(), sets[s].items.end());
        if (sets[s].items.empty() && options.shares[s] > 0) {
            auto const one = groups.size() == 1;
            refuse(concat("--split would leave nothing for ", sets[s].name),
                   concat(one ? "there is only " : "there are only ", groups.size(),
                          options.by_group ? " group" : " item", one ? "" : "s"),
                   options.by_group
                       ? "Give this set a larger share, or split by a column with more values"
                       : "Give this set a larger share, or import more items");
        }
    }
    return sets;
}

} // namespace

std::vector<ItemSet> split_items(ImportSource const& source, SplitOptions const& options) {
    std::vector<ItemSet> given;
    for (std::int64_t item = 0; item < source.items(); ++item) {
        auto const name = source.set(item);
        auto at = std::find_if(given.begin(), given.end(),
                               [&](ItemSet const& set) { return set.name == name; });
        if (at == given.end()) {
            at = given.insert(given.end(), {name, {}, 0});
        }
        at->items.push_back(item);
    }
    auto const none = std::find_if(given.begin(), given.end(),
                                   [](ItemSet const& set) { return set.name.empty(); });
    if (options.shares.empty() && given.size() > 1 && none != given.end()) {
        throw Error(ExitCode::data,
                    {source.name(none->items.front()),
                     "this item belongs to no set (train, validation or test), but other items do",
                     "Assign a set to every item or to none, or divide the items with --split"});
    }
    std::vector<ItemSet> sets;
    for (auto& set : given) {
        if (options.shares.empty() || !(set.name.empty() || set.name == set_names[0])) {
            sets.push_back(std::move(set));
            continue;
        }
        for (auto& part : by_shares(source, set.items, options)) {
            auto const same = std::find_if(given.begin(), given.end(), [&](ItemSet const& other) {
                return &other != &set && other.name == part.name;
            });
            if (part.items.empty()) {
                continue;
            }
            if (same != given.end()) {
                refuse(concat("--split gives a share to ", part.name),
                       "the source already has this set", "Set that share to 0");
            }
            sets.push_back(std::move(part));
        }
    }
    // The training set first, since the others are seen as it is.
    auto const place = [](ItemSet const& set) {
        return std::find(set_names.begin(), set_names.end(), set.name) - set_names.begin();
    };
    std::stable_sort(sets.begin(), sets.end(),
                     [&](ItemSet const& a, ItemSet const& b) { return place(a) < place(b); });
    return sets;
}

} // namespace lockstep::import
