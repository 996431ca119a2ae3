#pragma once

#include "lockstep/comm/communicator.hpp"
#include "lockstep/data/dataset.hpp"
#include "lockstep/events/events.hpp"
#include "lockstep/task/task.hpp"

#include <string>
#include <vector>

namespace lockstep::train {

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

    /// The worst of all ranks, the worst first, on rank 0; on others, nothing.
    ///
    /// Collective  over `comm`
    std::vector<WorstSample> collect(comm::Communicator const& comm) const;

  private:
    std::string text_of(torch::Tensor const& values, bool is_truth) const;
    torch::Tensor told_of(nn::Model& model, task::Tensors const& alone,
                          torch::Tensor const& output) const;

    std::int64_t max_;
    std::string kind_;
    task::Task const& task_;
    std::vector<std::string> names_;
    std::vector<WorstSample> worst_;
};

struct DescribeOptions {
    std::int64_t sequence = 0;  ///< as that of the data set
    bool pictures = false;      ///< also how a sample looks, if it is a picture
    bool channels_last = false; ///< of such a picture
};

/// Adds the place of each sample in its file, and what it was made from.
///
/// Throws  as Dataset::read and SampleSources::of
void describe(std::vector<WorstSample>& worst, data::Dataset const& data,
              DescribeOptions const& options);

} // namespace lockstep::train
