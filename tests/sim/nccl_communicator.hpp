#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "links.hpp"
#include "nccl.h"

/// A rank's end of a communicator of simulated devices.
struct ncclComm {
    ncclComm(std::string name_of_links, int own_rank, int all_ranks);
    ~ncclComm();

    /// Called while a kernel makes no progress. False: it never will.
    bool may_wait(int turn);

    /// The first failure counts.
    void fail(ncclResult_t result, std::string const& text);

    /// All transfers; false: aborted.
    bool carry_out(std::vector<lockstep::sim::Transfer>& transfers);

    /// For a kernel that will never end by itself.
    void hang();

    std::string name;
    lockstep::sim::Links links;
    int rank;
    int ranks;
    std::atomic<int> state = ncclInProgress;
    std::atomic<bool> aborted = false;
    std::atomic<int> running = 0; ///< kernels
    std::mutex mutex;
    std::string reason;  ///< of a failure; guarded
    std::set<int> peers; ///< of messages, by the host's thread
    std::uint64_t launched = 0;
    std::thread starter;
};
