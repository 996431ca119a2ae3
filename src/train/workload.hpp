#pragma once

#include "lockstep/config/deck.hpp"
#include "lockstep/data/dataset.hpp"
#include "lockstep/nn/model.hpp"
#include "lockstep/task/task.hpp"

#include <functional>
#include <memory>
#include <string>

namespace lockstep::train {

/// The data sets, the task and the model of a deck.
struct Workload {
    std::unique_ptr<data::Dataset> train;
    std::unique_ptr<data::Dataset> validation; ///< none: null
    std::unique_ptr<data::Dataset> test;       ///< none: null
    std::unique_ptr<task::Task> task;
    std::shared_ptr<nn::Model> model;
    task::Samples samples;            ///< what the training set, or the environment, offers
    rl::EnvironmentMaker environment; ///< none: null, and there are data sets
    task::MetricKind best_metric;     ///< what the best model is chosen by
};

/// Opens one data set of the deck, and its samples' weights where they are named; null when `files`
/// is empty.
std::unique_ptr<data::Dataset> open_dataset(config::Data const& data, std::string const& files,
                                            std::string const& weights = {});

/// `check_size` is told the number of parameters before the model is made, and may throw.
///
/// Throws  Error as Dataset, make_task, make_model and `check_size` do
Workload open_workload(config::Deck const& deck,
                       std::function<void(double parameters)> const& check_size);

/// The same where training is to fit into `available` bytes on each of `ranks` ranks.
///
/// Throws  Error as `open_workload` and `require_memory` do
Workload open_workload_within(config::Deck const& deck, int ranks, std::uint64_t available);

/// What the model of a deck is fed and shall give.
nn::Interface model_interface(config::Deck const& deck, task::Samples const& samples,
                              task::Task const& task);

/// One more instance of the workload's model.
std::shared_ptr<nn::Model> another_model(config::Deck const& deck, Workload const& work);

} // namespace lockstep::train
