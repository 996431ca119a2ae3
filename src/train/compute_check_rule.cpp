#include "compute_check_rule.hpp"

#include "base/host_facts.hpp"
#include "base/text.hpp"
#include "comm/collectives.hpp"
#include "device/device.hpp"
#include "nn/named_code.hpp"

#include <ATen/Version.h>

#include <algorithm>

namespace lockstep::train {

namespace {

std::string why_not(config::Deck const& deck, DataModule const& data) {
    if (!deck.run.deterministic) {
        return "run.deterministic = false";
    }
    if (deck.optimizer.update == "fully-sharded") {
        return "with optimizer.update = fully-sharded, no host has all parameters";
    }
    if (deck.communication.sync_batch_norm) {
        return "with communication.sync-batch-norm, a replica does not compute alone";
    }
    if (!deck.communication.broadcast_buffers) {
        return "with communication.broadcast-buffers = false, each replica has its own buffers";
    }
    if (!nn::named_code(deck).empty()) {
        return "code of yours computes, which may give other bits each time";
    }
    return data.has_batches_of_others()
               ? ""
               : "only a replica's own rank has the episodes that it plays";
}

/// What decides which bits a computation gives, besides the program.
std::string machine_text(torch::Device device) {
    auto const processor = processor_text();
    return concat(processor.substr(0, processor.rfind(", ")), ", ", at::get_cpu_capability(), ", ",
                  device.is_cpu() ? "" : device_text(device.type()));
}

} // namespace

ComputeCheckRule compute_check_rule(comm::Communicator const& world, config::Deck const& deck,
                                    DataModule const& data, torch::Device device) {
    if (deck.check.compute_every == 0 || world.size() == 1) {
        return {};
    }
    auto why = why_not(deck, data);
    auto const machines = comm::all_gather_text(world, machine_text(device));
    bool const alike =
        std::ranges::all_of(machines, [&](auto const& each) { return each == machines.front(); });
    if (why.empty() && !alike) {
        why = "the hosts' processors differ";
    }
    return {.compares = why.empty(),
            .remark =
                why.empty()
                    ? ""
                    : concat("what hosts compute is not compared (check.compute-every): ", why)};
}

} // namespace lockstep::train
