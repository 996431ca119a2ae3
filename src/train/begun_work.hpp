#pragma once

#include "batches/workload.hpp"
#include "checkpoint/store.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/config/deck.hpp"
#include "model_files/channel_pruning.hpp"

#include <torch/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::train {

/// What a run's data, model, teacher and first weights depend on besides its deck.
struct Beginning {
    std::optional<checkpoint::Found> const& found; ///< what the run resumes from
    bool force = false;
    int ranks = 1; ///< of the run, which may be planned by one process
    torch::Device device = torch::kCPU;
    std::function<void(double parameters)> check_size; ///< as of `open_workload`
};

/// What a run begins with, the same for train, plan, check and estimate: what one of them refuses,
/// all refuse.
struct BegunWork {
    Workload work;
    std::optional<checkpoint::VerifiedFile> first_weights; ///< none: the model's own, or `found`'s
    std::optional<ChannelPruning> channels;                ///< none are removed
    /// Shapes of the model's tensors where it has fewer channels than the deck's; else empty.
    std::string shapes;
    std::vector<std::string> remarks;
    std::vector<std::string> details; ///< what the remarks leave out
};

/// Opens the data, the model and its teacher, and gives the model of a new run its first weights.
///
/// Collective  over `world`
/// Throws      AgreedError for data, a model, a teacher or weights that cannot be used, or do not
///             fit each other
BegunWork begin_work(comm::Communicator const& world, config::Deck const& deck,
                     Beginning const& beginning);

} // namespace lockstep::train
