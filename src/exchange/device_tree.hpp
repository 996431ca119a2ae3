#pragma once

#include "comm/device_communicator.hpp"
#include "comm/host_schedule.hpp"
#include "comm/partition.hpp"

#include <c10/core/Stream.h>
#include <torch/types.h>

#include <deque>
#include <optional>
#include <vector>

namespace lockstep::train {

/// Sums over GPUs in the replica tree's order, by comm::HostSchedule with each rank as a host: a
/// rank has messages with as many others as the tree has levels, so that few connections are open.
/// Buckets follow one another: while one is in its second round, the next one is in its first, in
/// the same group of messages. All work is on one stream; the host waits for nothing.
class DeviceTree {
  public:
    struct Options {
        std::vector<comm::TreeNode> nodes; ///< the subtree of each rank
        int rank = 0;
        std::optional<comm::Route> route{}; ///< none: the faster one, by a model
        torch::Device device = torch::kCPU;
    };

    /// `devices` and `partition` must outlive it. Not collective.
    DeviceTree(comm::DeviceCommunicator& devices, comm::Partition const& partition,
               c10::Stream stream, Options const& options);

    /// Begins the sum of a bucket of `values` [partition's size]: after `finish`, the rank's own
    /// shard is the sum, and the other shards are undefined. Pass buckets in the same order on all
    /// ranks.
    ///
    /// Collective  over the ranks of `devices`
    /// Throws      as DeviceCommunicator::exchange
    /// Returns     bytes sent
    std::int64_t sum(int bucket, torch::Tensor const& values);
    /// Does the remaining rounds of all sums. Returns bytes sent. Collective, throws: as sum
    std::int64_t finish(torch::Tensor const& values);

    /// Sends each rank the other ranks' shards of all buckets: the sum's messages in reverse.
    ///
    /// Collective  over the ranks of `devices`
    /// Throws      as DeviceCommunicator::exchange
    void gather(torch::Tensor const& values);

  private:
    /// What one rank sends another in a round, or receives.
    struct Message {
        int peer = 0;
        std::size_t child = 0;   ///< of the step, whose sum it is
        std::vector<int> owners; ///< of the shards in it
        torch::Tensor packed;    ///< room for the shards, one after the other
    };
    /// What a rank does at one node of the tree.
    struct Step {
        int round = 0;
        std::vector<comm::TreeNode> children;
        std::size_t home = 0; ///< the child that this rank has its part of
        std::vector<Message> sends;
        std::vector<Message> receives;
    };
    struct Flight {
        int bucket = 0;
        int round = 0; ///< the next one
    };

    std::vector<torch::Tensor> shards(torch::Tensor const& values, int bucket,
                                      Message const& message) const;
    std::vector<torch::Tensor> packed_shards(torch::Tensor const& values, int bucket,
                                             Message const& message) const;
    torch::Tensor room(torch::Tensor const& values, int bucket, Message const& message) const;
    std::int64_t total(int bucket, Message const& message) const;
    comm::DeviceView sent(torch::Tensor const& values, int bucket, Message const& message) const;
    comm::DeviceSpan received(torch::Tensor const& values, int bucket,
                              Message const& message) const;
    void unpack(torch::Tensor const& values, int bucket, Message const& message) const;
    void add_up(torch::Tensor const& values, int bucket, Step const& step) const;
    std::int64_t advance(torch::Tensor const& values, bool back);
    Step const* step_of(int round) const;

    comm::DeviceCommunicator& devices_;
    comm::Partition const& partition_;
    c10::Stream stream_;
    int rank_;
    int rounds_ = 0;
    std::vector<Step> steps_; ///< this rank's, by round
    std::deque<Flight> flights_;
};

} // namespace lockstep::train
