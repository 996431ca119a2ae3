#include "comm/host_schedule.hpp"

#include <algorithm>
#include <map>
#include <span>

namespace lockstep::comm {

namespace {

using Stage = HostSchedule::Stage;
using Partials = std::span<Partial const>;

struct Child {
    TreeNode node;
    Partials partials;
};

/// A stage's messages, by partner.
struct Messages {
    std::map<int, HostSchedule::Message> sends{};
    std::map<int, HostSchedule::Message> receives{};
};

/// Walks the nodes above one host's partials.
class Builder {
  public:
    Builder(Hosts const& hosts, int rank, Route route)
        : hosts_(hosts), rank_(rank), host_(hosts.host(rank)), route_(route),
          place_(static_cast<std::size_t>(hosts.count())) {
        for (int owner = 0; owner < static_cast<int>(hosts.of_rank.size()); ++owner) {
            if (hosts_.delegate(host_, owner) == rank_) {
                served_.push_back(owner);
            }
        }
    }

    /// Returns  the rank whose array holds this host's part of the node's sum; -1: it has none
    int visit(TreeNode node, Partials partials, std::vector<int> const& holders, int depth);
    std::vector<int> owners_hosts() const;

    std::vector<int> const& served() const { return served_; }
    std::vector<Stage> take() { return std::move(stages_); }

  private:
    std::vector<Child> children_of(TreeNode node, Partials partials) const;
    std::vector<int> hosts_of(Partials partials) const;
    std::vector<int> holders_below(std::vector<int> const& above, std::vector<int> const& order,
                                   std::vector<int> const& below);
    void plan_child(int child, std::vector<int> const& below, std::vector<int> const& holders,
                    Messages& messages) const;

    Hosts const& hosts_;
    int rank_;
    int host_;
    Route route_;
    std::vector<int> served_;
    std::vector<int> place_; ///< of each host among those of a node; scratch
    std::vector<Stage> stages_;
};

std::vector<int> Builder::owners_hosts() const {
    std::vector<int> all;
    all.reserve(served_.size());
    for (int const owner : served_) {
        all.push_back(hosts_.host(owner));
    }
    return all;
}

std::vector<Child> Builder::children_of(TreeNode node, Partials partials) const {
    if (route_ == Route::direct) {
        std::vector<Child> all;
        for (auto const& partial : partials) {
            all.push_back({partial.node, Partials(&partial, 1)});
        }
        return all;
    }
    auto const middle = std::find_if(partials.begin(), partials.end(),
                                     [&](auto const& partial) {
                                         return partial.node.first >= node.right().first;
                                     }) -
                        partials.begin();
    auto const left = static_cast<std::size_t>(middle);
    return {{node.left(), partials.first(left)}, {node.right(), partials.subspan(left)}};
}

/// Each once, in the tree's order.
std::vector<int> Builder::hosts_of(Partials partials) const {
    if (partials.size() == 1) {
        return {partials.front().host};
    }
    std::vector<int> all;
    std::vector<bool> seen(static_cast<std::size_t>(hosts_.count()), false);
    for (auto const& partial : partials) {
        auto const at = static_cast<std::size_t>(partial.host);
        if (!seen[at]) {
            seen[at] = true;
            all.push_back(partial.host);
        }
    }
    return all;
}

/// Who holds a shard at a child: the same host as at the node, where that has a part of the child;
/// the other shards are dealt to the child's hosts evenly, in the order of who holds them above.
/// The shards of each column (owners of one place on their hosts), which the same rank of a host
/// works on, by themselves.
std::vector<int> Builder::holders_below(std::vector<int> const& above,
                                        std::vector<int> const& order,
                                        std::vector<int> const& below) {
    if (below.size() == 1) {
        return std::vector<int>(above.size(), below.front());
    }
    std::fill(place_.begin(), place_.end(), -1);
    for (int const host : below) {
        place_[static_cast<std::size_t>(host)] = 0;
    }
    auto result = above;
    std::map<int, std::vector<std::size_t>> columns; // of shards that nobody below holds above
    for (std::size_t i = 0; i < above.size(); ++i) {
        if (place_[static_cast<std::size_t>(above[i])] < 0) {
            columns[hosts_.local(served_[i])].push_back(i);
        }
    }
    for (std::size_t i = 0; i < order.size(); ++i) {
        place_[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
    }
    for (auto& [column, shards] : columns) {
        std::stable_sort(shards.begin(), shards.end(), [&](std::size_t a, std::size_t b) {
            return place_[static_cast<std::size_t>(above[a])] <
                   place_[static_cast<std::size_t>(above[b])];
        });
        for (std::size_t i = 0; i < shards.size(); ++i) {
            result[shards[i]] = below[i * below.size() / shards.size()];
        }
    }
    return result;
}

/// In the order of the partners, with what each carries back.
std::vector<HostSchedule::Message> finished(std::map<int, HostSchedule::Message> by_partner) {
    std::vector<HostSchedule::Message> all;
    for (auto& [partner, message] : by_partner) {
        message.partner = partner;
        for (auto const& entry : message.entries) {
            message.owners.push_back(entry.owner);
        }
        std::sort(message.owners.begin(), message.owners.end());
        message.owners.erase(std::unique(message.owners.begin(), message.owners.end()),
                             message.owners.end());
        all.push_back(std::move(message));
    }
    return all;
}

int Builder::visit(TreeNode node, Partials partials, std::vector<int> const& holders, int depth) {
    if (partials.size() == 1) {
        auto const& partial = partials.front();
        return partial.host == host_ ? partial.ranks.front() : -1;
    }
    auto const hosts = hosts_of(partials);
    if (std::find(hosts.begin(), hosts.end(), host_) == hosts.end()) {
        return -1;
    }
    Stage stage;
    Messages messages;
    for (std::size_t i = 0; i < served_.size(); ++i) {
        if (holders[i] == host_) {
            stage.owners.push_back(served_[i]);
        }
    }
    for (auto const& child : children_of(node, partials)) {
        auto const below = holders_below(holders, hosts, hosts_of(child.partials));
        plan_child(static_cast<int>(stage.children.size()), below, holders, messages);
        stage.homes.push_back(visit(child.node, child.partials, below, depth + 1));
        stage.children.push_back(child.node);
    }
    stage.node = node;
    stage.depth = depth;
    stage.home =
        *std::find_if(stage.homes.begin(), stage.homes.end(), [](int home) { return home >= 0; });
    stage.sends = finished(std::move(messages.sends));
    stage.receives = finished(std::move(messages.receives));
    stages_.push_back(std::move(stage));
    return stages_.back().home;
}

void Builder::plan_child(int child, std::vector<int> const& below, std::vector<int> const& holders,
                         Messages& messages) const {
    int at = 0; // among the stage's owners
    for (std::size_t i = 0; i < served_.size(); ++i) {
        int const owner = served_[i];
        bool const here = holders[i] == host_;
        if (here != (below[i] == host_)) {
            auto const partner = hosts_.delegate(here ? below[i] : holders[i], owner);
            auto& message = (here ? messages.receives : messages.sends)[partner];
            message.entries.push_back({child, owner, here ? at : 0});
        }
        at += here ? 1 : 0;
    }
}

/// Nodes of one depth below which both ranks' hosts have partials are met in the same order by
/// both.
void number_messages(std::vector<Stage>& stages) {
    for (auto const all : {&Stage::sends, &Stage::receives}) {
        std::map<std::pair<int, int>, int> known; // by depth and partner
        for (auto& stage : stages) {
            for (auto& message : stage.*all) {
                message.tag = stage.depth + 64 * known[{stage.depth, message.partner}]++;
            }
        }
    }
}

} // namespace

HostSchedule::HostSchedule(TreeNode root, std::vector<Partial> const& partials, Hosts const& hosts,
                           int rank, Route route) {
    if (hosts.count() == 1) {
        return;
    }
    Builder builder(hosts, rank, route);
    builder.visit(root, partials, builder.owners_hosts(), 0);
    served_ = builder.served();
    stages_ = builder.take();
    number_messages(stages_);
}

int rounds_of(TreeNode root, std::vector<Partial> const& partials, Route route) {
    int rounds = partials.size() > 1 ? 1 : 0;
    for (auto const& partial : partials) {
        int depth = 0;
        for (auto node = root; node != partial.node; ++depth) {
            node = partial.node.first < node.right().first ? node.left() : node.right();
        }
        rounds = route == Route::halving ? std::max(rounds, depth) : rounds;
    }
    return rounds;
}

} // namespace lockstep::comm
