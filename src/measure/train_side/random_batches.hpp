#pragma once

#include "base/scratch_directory.hpp"
#include "batches/loaded_batches.hpp"
#include "lockstep/task/task.hpp"
#include "step/batch_source.hpp"

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::measure {

/// Random images of 28 × 28 in ten classes, all of which are in memory before the first is needed:
/// what a step costs is measured, not what reading costs.
class RandomBatches {
  public:
    /// `batches` of `batch` images each; other images for each `stream`.
    ///
    /// Throws  Error 73 or 74 when the directory for temporary files cannot hold them
    RandomBatches(std::int64_t batches, std::int64_t batch, int stream);
    RandomBatches(RandomBatches const&) = delete;
    RandomBatches& operator=(RandomBatches const&) = delete;

    static std::vector<std::int64_t> sample_shape() { return {28, 28}; }
    static constexpr std::int64_t classes = 10;
    task::Samples samples() const { return task::Samples::of(*set_); }

    train::BatchSource& source() noexcept { return *source_; }

  private:
    ScratchDirectory directory_;
    std::optional<data::Dataset> set_;
    std::promise<void> all_made_;
    std::unique_ptr<data::Loader> loader_;
    std::unique_ptr<train::LoadedBatches> source_;
};

} // namespace lockstep::measure
