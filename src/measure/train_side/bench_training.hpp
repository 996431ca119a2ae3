#pragma once

#include "lockstep/comm/communicator.hpp"
#include "lockstep/config/deck.hpp"
#include "train/engine.hpp"

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::measure {

/// An empty file of this process's own, removed when it goes.
class TemporaryFile {
  public:
    /// Throws  Error 73 or 74 when the directory for temporary files cannot hold it
    TemporaryFile();
    TemporaryFile(TemporaryFile const&) = delete;
    TemporaryFile& operator=(TemporaryFile const&) = delete;
    ~TemporaryFile();

    std::string const& path() const noexcept { return path_; }

  private:
    std::string path_;
};

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
    TemporaryFile file_;
    std::optional<data::Dataset> set_;
    std::promise<void> all_made_;
    std::unique_ptr<data::Loader> loader_;
    std::unique_ptr<train::LoadedBatches> source_;
};

/// Seconds that a step took on this rank.
struct StepTimes {
    double whole = 0;
    double forward = 0;
    double backward = 0;
    double communication = 0; ///< after all ranks had arrived
    double imbalance = 0;     ///< waiting for slower ranks
    double update = 0;
};

/// A training whose steps can be timed.
class BenchTraining {
  public:
    virtual ~BenchTraining() = default;
    /// Collective  over the ranks that train together
    virtual StepTimes step() = 0;
    virtual double loss() const = 0; ///< mean over the samples of the last step
    virtual std::uint64_t parameter_bytes() const = 0;
};

/// By the engine; one replica for each rank of `comm`, which must outlive it.
///
/// Collective  over `comm`
std::unique_ptr<BenchTraining> engine_training(comm::Communicator const& comm,
                                               config::Deck const& deck, RandomBatches& batches);

/// By a loop as LibTorch's users write it, with LibTorch's own optimizer; one rank alone.
std::unique_ptr<BenchTraining> bare_training(config::Deck const& deck, RandomBatches& batches);

} // namespace lockstep::measure
