#include "step/replica_check.hpp"

#include "base/hash.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <map>

namespace lockstep::train {

/// Entry by entry, since what lies between them is nobody's, and last the buffers.
std::vector<std::span<std::byte const>>
ReplicaCheck::weights_of(torch::Tensor const& parameters) const {
    auto const values = std::as_bytes(
        std::span(parameters.const_data_ptr<float>(), static_cast<std::size_t>(layout_.size)));
    std::vector<std::span<std::byte const>> parts;
    for (auto const& entry : layout_.entries) {
        parts.push_back(values.subspan(static_cast<std::size_t>(entry.first) * sizeof(float),
                                       static_cast<std::size_t>(entry.count) * sizeof(float)));
    }
    parts.push_back(buffers_.bytes());
    return parts;
}

std::vector<std::uint64_t> ReplicaCheck::hashes_of_ranks() const {
    auto const parameters = arena_.parameters().cpu();
    Hasher hasher;
    for (auto const& part : weights_of(parameters)) {
        hasher.add(part);
    }
    return comm::all_gather(world_, hasher.digest());
}

ReplicaCheck::WeightHash ReplicaCheck::hash() const {
    auto const hashes = hashes_of_ranks();
    auto const odd =
        std::find_if(hashes.begin(), hashes.end(), [&](auto each) { return each != hashes[0]; });
    if (odd == hashes.end()) {
        return {hashes[0], {}};
    }
    auto const rank = static_cast<std::size_t>(odd - hashes.begin());
    auto const parameters = arena_.parameters().cpu();
    std::string where = "the buffers";
    auto const parts = weights_of(parameters);
    for (std::size_t entry = 0; entry < layout_.entries.size(); ++entry) {
        auto const of_ranks = comm::all_gather(world_, hash64(parts[entry]));
        if (of_ranks[rank] != of_ranks[0]) {
            where = layout_.entries[entry].name;
            break;
        }
    }
    return {hashes[0], concat("replica ", nodes_[rank].first, " on rank ", rank,
                              " differ from replica 0's, first in ", where)};
}

void ReplicaCheck::require_same(std::int64_t step) const {
    auto const hashes = hashes_of_ranks();
    std::map<std::uint64_t, int> replicas_with;
    for (auto const each : hashes) {
        ++replicas_with[each];
    }
    if (replicas_with.size() == 1) {
        return;
    }
    auto const right =
        std::max_element(replicas_with.begin(), replicas_with.end(),
                         [](auto const& a, auto const& b) { return a.second < b.second; });
    auto const odd =
        std::find_if(hashes.begin(), hashes.end(), [&](auto each) { return each != right->first; });
    auto const rank = static_cast<int>(odd - hashes.begin());
    bool const max_agree = 2 * right->second > world_.size();
    throw AgreedError(ExitCode::rank_lost,
                      {max_agree ? concat("the replica of rank ", rank, " differs from the others")
                                 : std::string("the ranks' replicas differ, and no majority "
                                               "agrees, so it is unknown which replicas are right"),
                       "a rank's memory or processor is faulty, or the hosts' processors differ",
                       max_agree ? "Start the run again from the last checkpoint. If replicas "
                                   "differ again, exclude the host of that rank"
                                 : "Start the run again from the last checkpoint. If replicas "
                                   "differ again, test the memory and processors of the hosts"},
                      rank,
                      concat(comm::place_of_rank(world_, rank), " in training at step ", step));
}

} // namespace lockstep::train
