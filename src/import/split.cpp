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
constexpr double negligible = 1e-6; ///< items, which rounding makes of nothing

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

/// Items of one class: those that each set lacks, and those that are not dealt yet.
struct ClassNeed {
    double all = 0;
    double left = 0;
    std::vector<double> lack;

    /// What the sets will lack of it, or have too much of, in the end: each set gets at most what
    /// it lacks, and then whole items.
    std::vector<double> rest() const {
        double wanted = 0;
        for (auto const each : lack) {
            wanted += std::max(each, 0.0);
        }
        std::vector<double> rests;
        for (auto const each : lack) {
            auto const rest = each - (wanted > 0 ? left * std::max(each, 0.0) / wanted : 0);
            rests.push_back(std::abs(rest) < negligible ? 0 : rest);
        }
        return rests;
    }
};

/// Deals groups to sets (after Sechidis, Tsoumakas, Vlahavas, "On the stratification of multi-label
/// data", ECML PKDD 2011: the greatest need first). A group goes to the set that lacks most of its
/// classes. Where that is less than the group, a class is rounded: of the sets that lack some of
/// it, the one that also lacks most after the rounding of the other classes gets the group, so that
/// not all are rounded alike.
class Dealing {
  public:
    Dealing(std::vector<Group> const& groups, std::vector<double> const& shares)
        : shares_(shares), rests_(shares.size()) {
        for (auto const& group : groups) {
            for (auto const& [label, count] : group.classes) {
                classes_[label].all += count;
            }
        }
        for (auto& [_, need] : classes_) {
            need.left = need.all;
            for (auto const share : shares_) {
                need.lack.push_back(need.all * share);
            }
        }
    }

    /// The set of the next group.
    std::size_t deal(Group const& group) {
        std::vector<double> needs(shares_.size());
        std::vector<double> others = rests_;
        double weight = 0;
        for (auto const& [label, count] : group.classes) {
            auto const& need = classes_.at(label);
            auto const own = need.rest();
            for (std::size_t s = 0; s < needs.size(); ++s) {
                needs[s] += need.lack[s] * count / need.all;
                others[s] -= own[s];
            }
            weight += count / need.all;
        }
        auto best = largest(needs, [](double) { return true; });
        if (!fits(group, best)) {
            auto together = needs;
            for (std::size_t s = 0; s < needs.size(); ++s) {
                together[s] += std::abs(others[s]) < negligible ? 0 : others[s] * weight;
                together[s] = needs[s] > negligible * weight ? together[s] : -HUGE_VAL;
            }
            if (auto const found = largest(together, [](double need) { return need > -HUGE_VAL; });
                found < shares_.size()) {
                best = found;
            }
        }
        take(group, best);
        return best;
    }

  private:
    /// The first of the largest, among the sets that have a share.
    template <class Counts>
    std::size_t largest(std::vector<double> const& needs, Counts const& counts) const {
        auto best = shares_.size();
        for (std::size_t s = 0; s < shares_.size(); ++s) {
            if (shares_[s] > 0 && counts(needs[s]) &&
                (best == shares_.size() || needs[s] > needs[best])) {
                best = s;
            }
        }
        return best;
    }

    bool fits(Group const& group, std::size_t set) const {
        return std::ranges::all_of(group.classes, [&](auto const& of) {
            return classes_.at(of.first).lack[set] > of.second - negligible;
        });
    }

    void take(Group const& group, std::size_t set) {
        for (auto const& [label, count] : group.classes) {
            auto& need = classes_.at(label);
            add(need.rest(), -1);
            need.lack[set] -= count;
            need.left -= count;
            add(need.rest(), 1);
        }
    }
    void add(std::vector<double> const& rest, double sign) {
        for (std::size_t s = 0; s < rests_.size(); ++s) {
            rests_[s] += sign * rest[s];
        }
    }

    std::vector<double> const& shares_;
    std::map<std::int64_t, ClassNeed> classes_;
    std::vector<double> rests_; ///< of all classes
};

std::vector<ItemSet> by_shares(ImportSource const& source, std::vector<std::int64_t> const& items,
                               SplitOptions const& options) {
    check_shares(options.shares);
    auto const groups = groups_of(source, items, options);
    Dealing dealing(groups, options.shares);
    std::vector<ItemSet> sets(options.shares.size());
    for (auto const& group : groups) {
        auto& set = sets[dealing.deal(group)];
        set.items.insert(set.items.end(), group.items.begin(), group.items.end());
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
