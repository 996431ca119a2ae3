#pragma once

#include "comm/replica_tree.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::train {

/// The ranks of one check: whose computation of a replica is compared with whose.
struct CheckedReplica {
    int replica = 0;
    int owner = 0;  ///< the rank that computes it anyway
    int second = 0; ///< the rank that repeats it
    int third = -1; ///< the rank that decides where they differ; -1: there is no third host
};

/// Says which replica is computed again at each check, and where: by a rank of another host, or on
/// a single host by another rank. From check to check the replicas take turns, host by host, and
/// after each round of them the other hosts do: in `period` checks each replica is compared with
/// every other host. It follows from the check's number alone.
class CheckRotation {
  public:
    /// `nodes`: the replicas of each rank. At least two ranks.
    CheckRotation(std::vector<comm::TreeNode> const& nodes,
                  std::vector<std::string> const& host_of_rank);

    CheckedReplica at(std::int64_t check) const;
    std::int64_t period() const;

  private:
    struct Turn {
        int replica = 0;
        int owner = 0;
        int place = 0; ///< of the owner
    };
    std::vector<std::vector<int>> places_; ///< the ranks of each host; of one host, each rank
    std::vector<Turn> turns_;              ///< of the replicas
    bool hosts_decide_ = false;            ///< there are three of them
};

} // namespace lockstep::train
