#pragma once

#include "comm/topology.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/config/deck.hpp"

#include <torch/types.h>

#include <vector>

namespace lockstep::train {

/// The device of this rank: what the deck names; with `auto`, the one for its local rank among the
/// GPUs that run.devices allows, or the CPU where there is none.
///
/// Throws  Error 69 when the deck names a device that does not exist here, 64 when it is no
///         device's name
torch::Device choose_device(config::Run const& run, comm::Topology const& topology);

/// Whether `choose_device` gives an accelerator to the ranks of this host, so far as the deck and
/// the number of accelerators tell.
bool uses_accelerator(config::Run const& run);

/// Refuses ranks with devices of different kinds.
///
/// Collective  over world
/// Throws      AgreedError 69 that names the first rank whose kind is not rank 0's
void require_one_kind(comm::Communicator const& world, torch::Device device);

/// The devices on which the replicas of a single process compute concurrently: the GPUs that
/// run.devices allows, with run.mode = dp or auto; else none, and replicas are on the rank's own
/// device.
///
/// Throws  as choose_device
std::vector<torch::Device> concurrent_devices(config::Run const& run, int ranks);

/// The kind of accelerator that LibTorch can use here: "cuda", "hip", "xpu"; empty: none.
std::string accelerator_name();

/// Waits until all work of the device is done; at once for the CPU.
void synchronize(torch::Device device);

/// "cpu" or "cuda:0".
std::string device_text(torch::Device device);

} // namespace lockstep::train
