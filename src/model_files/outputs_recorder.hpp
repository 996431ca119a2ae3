#pragma once

#include "checkpoint/record.hpp"
#include "lockstep/comm/communicator.hpp"

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::train {

/// Collects what a model returns for the samples of a data set, of which each rank has a stretch,
/// and writes the file that `TeacherOutputs` reads. What a rank has collected is in its memory.
class OutputsRecorder {
  public:
    /// Takes the outputs of a batch, whose samples follow those of the batch before; the first one
    /// is sample `first` of the set.
    ///
    /// Shape   outputs [n, outputs…], the same for all batches but for n
    /// Throws  Error 64 for another shape, 65 for an output that is not finite
    void add(std::int64_t first, torch::Tensor const& outputs);

    /// Writes the file from all ranks, as checkpoint::write does; `record` says what the outputs
    /// are of.
    ///
    /// Collective  over `world`; same record and path on all ranks
    /// Throws      AgreedError 64 for outputs of different shapes; as checkpoint::write
    void write(comm::Communicator const& world, std::int64_t samples, checkpoint::Record record,
               std::filesystem::path const& path) const;

  private:
    /// The shape of a sample's outputs, also on ranks without samples.
    ///
    /// Collective  over `world`
    std::vector<std::int64_t> shape_of_all(comm::Communicator const& world) const;

    std::int64_t first_ = 0;
    std::vector<std::int64_t> shape_; ///< of a sample's outputs; known after the first batch
    std::vector<float> values_;
    std::uint64_t hash_ = 0; ///< a sum over the batches, which does not depend on ranks
};

} // namespace lockstep::train
