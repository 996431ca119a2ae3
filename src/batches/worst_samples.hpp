#pragma once

#include "batches/place_pictures.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/data/dataset.hpp"
#include "lockstep/events/events.hpp"
#include "lockstep/task/task.hpp"

#include <string>
#include <vector>

namespace lockstep::train {

/// A sample with a large loss, and where each of its places has a class, what a slice of it was
/// taken for.
struct FoundSample {
    WorstSample told;
    std::int64_t slice = -1; ///< the one with the most mistakes; -1: there is only one
    PlaceClasses places{};   ///< of this slice; undefined: no places, or not asked for
};

/// Finds the samples of an evaluation whose losses are largest. The model runs once for a batch, as
/// ever; the task measures each of its samples alone. A loss that is not finite is the largest; of
/// equal ones, the samples with the lower numbers come first.
class WorstSamples {
  public:
    /// `task` and `data` must outlive it.
    ///
    /// Throws  Error 64 for a task whose samples have no losses of their own
    WorstSamples(std::int64_t max, std::string const& kind, task::Task const& task,
                 std::vector<std::string> class_names);

    /// Takes a batch with what the model returned for it; `first` is its first sample.
    ///
    /// Throws  Error 64 for outputs that are not [samples, …]
    void add(std::int64_t first, torch::Tensor const& outputs, task::Tensors const& batch);

    /// The worst of all ranks, the worst first, on rank 0; on others, nothing. `pictures`: with
    /// their places.
    ///
    /// Collective  over `comm`
    std::vector<FoundSample> collect(comm::Communicator const& comm, bool pictures) const;

  private:
    FoundSample found(std::int64_t sample, double loss, task::Tensors const& alone,
                      torch::Tensor const& output) const;
    /// Adds the places of the worst samples that other ranks have.
    ///
    /// Collective  over `comm`
    void gather_places(comm::Communicator const& comm, std::vector<FoundSample>& worst) const;
    std::string text_of(torch::Tensor const& values, bool is_truth) const;
    torch::Tensor told_of(nn::Model& model, task::Tensors const& alone,
                          torch::Tensor const& output) const;

    std::int64_t max_;
    std::string kind_;
    task::Task const& task_;
    std::vector<std::string> names_;
    std::vector<FoundSample> worst_;
};

/// The samples with their places in their files and, with `pictures`, how they look if they are
/// images; where each place has a class, next to the same with the true classes in colours, and
/// with the predicted ones.
///
/// Throws  as Dataset::read
std::vector<WorstSample> described(std::vector<FoundSample> const& worst, data::Dataset const& data,
                                   bool pictures, bool channels_last);

} // namespace lockstep::train
