#include "nccl_communicator.hpp"

#include <algorithm>
#include <chrono>

namespace {

void pause(double us) {
    std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(us));
}

} // namespace

ncclComm::ncclComm(std::string name_of_links, int own_rank, int all_ranks)
    : name(std::move(name_of_links)), links(name, own_rank, all_ranks), rank(own_rank),
      ranks(all_ranks) {}

ncclComm::~ncclComm() {
    if (starter.joinable()) {
        starter.join();
    }
}

bool ncclComm::may_wait(int turn) {
    if (aborted) {
        return false;
    }
    if (turn % 512 == 511) {
        int const gone = links.gone();
        if (gone >= 0) {
            fail(ncclRemoteError, "rank " + std::to_string(gone) + " is gone");
        }
    }
    if (turn > 64) {
        pause(20);
    } else {
        std::this_thread::yield();
    }
    return true;
}

void ncclComm::fail(ncclResult_t result, std::string const& text) {
    std::lock_guard const lock(mutex);
    if (state == ncclSuccess) {
        reason = text;
        state = result;
    }
}

bool ncclComm::carry_out(std::vector<lockstep::sim::Transfer>& transfers) {
    for (int idle = 0;; ++idle) {
        if (std::all_of(transfers.begin(), transfers.end(),
                        [](lockstep::sim::Transfer const& each) { return each.done(); })) {
            return true;
        }
        std::string wrong;
        idle = links.move(transfers, wrong) ? 0 : idle;
        if (!wrong.empty()) {
            fail(ncclInvalidUsage, wrong);
            hang();
        }
        if (!may_wait(idle)) {
            return false;
        }
    }
}

void ncclComm::hang() {
    while (may_wait(0)) {
        pause(1000);
    }
}
