#include "comm/link_model.hpp"

#include "comm/host_schedule.hpp"

namespace lockstep::comm {

namespace {

RouteEffort effort_of(Route route, TreeNode root, std::vector<Partial> const& partials,
                      Hosts const& hosts) {
    HostSchedule const schedule(root, partials, hosts, 0, route);
    RouteEffort effort{.route = route, .rounds = rounds_of(root, partials, route)};
    for (auto const& stage : schedule.stages()) {
        effort.messages += static_cast<int>(stage.sends.size() + stage.receives.size());
        for (auto const& message : stage.sends) {
            auto const shards = static_cast<double>(message.entries.size());
            effort.shards += shards;
            effort.copied_shards += shards > 1 ? shards : 0;
        }
    }
    return effort;
}

} // namespace

double LinkModel::seconds(RouteEffort const& effort, double shard_bytes) const {
    return effort.rounds * latency_s + effort.messages * message_s +
           effort.shards * shard_bytes / bytes_per_s +
           effort.copied_shards * shard_bytes / copy_per_s;
}

RouteEffort faster_route(TreeNode root, std::vector<Partial> const& partials, Hosts const& hosts,
                         double shard_bytes, LinkModel const& link) {
    auto const direct = effort_of(Route::direct, root, partials, hosts);
    auto const halving = effort_of(Route::halving, root, partials, hosts);
    return link.seconds(halving, shard_bytes) < link.seconds(direct, shard_bytes) ? halving
                                                                                  : direct;
}

} // namespace lockstep::comm
