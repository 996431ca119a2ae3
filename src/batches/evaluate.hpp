#pragma once

#include "data/loader.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/config/deck.hpp"
#include "lockstep/data/dataset.hpp"
#include "lockstep/task/task.hpp"

#include <functional>
#include <optional>
#include <vector>

namespace lockstep::train {

/// The result for a whole data set.
struct Evaluation {
    double loss = 0; ///< mean over samples
    std::int64_t samples = 0;
    task::Metrics metrics;
    double seconds = 0;
    std::vector<std::int64_t> confusion{}; ///< as Task::confusion
    task::Metrics constant{}; ///< with the loss, of EvaluateOptions::constant on the same samples
};

/// Whether to stop early; collective, called every few batches, or after every round of episodes.
/// This rank has done `done` of its `all` batches or rounds.
using StopEvaluation = std::function<bool(std::int64_t done, std::int64_t all)>;

/// Gets what the model returned for a batch; `first` is the batch's first sample. On each rank, the
/// samples of a batch follow those of the batch before.
using TakeOutputs = std::function<void(std::int64_t first, torch::Tensor const& outputs,
                                       task::Tensors const& batch)>;

/// Calls a pass, on all ranks together, whose forward needs the parameters.
using LendParameters = std::function<void(std::function<void()> const& pass)>;

struct EvaluateOptions {
    std::int64_t batch = 128;
    data::LoaderOptions loader;
    torch::Device device = torch::kCPU;
    config::Precision precision{};
    StopEvaluation stop{};
    TakeOutputs outputs{};         ///< null: nobody needs them
    LendParameters lend{};         ///< null: the model has them
    nn::Model* constant = nullptr; ///< another model, which needs no key; null: none
};

/// Options from a deck. The batch does not depend on the deck's, so that a checkpoint's measurement
/// does not depend on it.
EvaluateOptions evaluate_options(config::Deck const& deck, torch::Device device);

/// Throws  Error 64 where the task would keep too many scores of this many samples
void require_room_for_scores(task::Task const& task, std::int64_t samples);

/// Runs every sample of `dataset` through the model once, over all ranks, each batch on one of
/// them; no sample is repeated or left out, and the figures are the same bits on any rank count:
/// losses are summed by batch in a fixed tree, counts are whole numbers, and what is kept of each
/// sample is in the samples' order.
///
/// Collective  over `comm`; same model and data on all ranks
/// Throws      AgreedError when a rank cannot read its part; as `require_room_for_scores`
/// Returns     nothing when `options.stop` ended it early
std::optional<Evaluation> evaluate(comm::Communicator const& comm, nn::Model& model,
                                   task::Task const& task, data::Dataset const& dataset,
                                   EvaluateOptions const& options);

} // namespace lockstep::train
