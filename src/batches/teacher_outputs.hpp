#pragma once

#include "checkpoint/reader.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/data/dataset.hpp"

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace lockstep::train {

/// Tells a file of another kind by its first bytes, before it is verified as a whole.
///
/// Throws  Error 64 for a file of another kind; 66 when there is no such file
void require_file_of_outputs(std::filesystem::path const& path);

/// The hash of the outputs of `outputs_batch` samples, or of the last ones, from `first` on.
std::uint64_t hash_of_part(std::int64_t first, std::span<float const> outputs);

/// A file of the outputs of a model for all samples of a data set, which `OutputsRecorder` has
/// written.
class TeacherOutputs {
  public:
    /// Throws  Error 64 for a file of another kind; 66 when there is no such file, 65 when it is
    ///         damaged
    explicit TeacherOutputs(checkpoint::VerifiedFile const& file);

    /// What the outputs are for, as Audit::hash_of knows it: no negative number.
    static std::int64_t hash_of(data::Dataset const& set);

    checkpoint::Record const& record() const noexcept { return reader_.record(); }
    std::int64_t samples() const;
    /// The outputs of a sample, as a target of the batches.
    data::FieldInfo const& info() const noexcept { return info_; }
    /// A hash of all outputs, the same on any number of ranks; neither negative nor 0.
    std::int64_t hash() const;

    /// Reads all outputs, each rank a share.
    ///
    /// Collective  over `world`; same file on all ranks
    /// Throws      AgreedError 65 for an output that is not finite, or for others than those whose
    ///             hash is recorded
    void require_values(comm::Communicator const& world) const;

    /// Reads the outputs of samples, by their numbers in the files of the data set, in any order.
    /// Any thread may read.
    ///
    /// Shape   into becomes [samples, outputs…]
    /// Throws  Error 65 or 74 when the file cannot be read any more
    void read(std::span<std::int64_t const> samples, std::vector<float>& into) const;

  private:
    checkpoint::Reader reader_;
    data::FieldInfo info_;
};

} // namespace lockstep::train
