#pragma once

#include "checkpoint/background_writer.hpp"
#include "checkpoint/store.hpp"
#include "lockstep/comm/communicator.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "trial_state.hpp"

namespace lockstep::measure {

/// Measures a checkpoint of a `TrialState` in a directory, and its lower bounds. Every member is
/// collective over `world`, which must outlive the trial, and returns the seconds of the slowest
/// rank.
class CheckpointTrial {
  public:
    CheckpointTrial(comm::Communicator const& world, std::uint64_t bytes,
                    std::filesystem::path directory);

    void settle() const; ///< waits until the disk is idle
    double raw_write();  ///< as many bytes by pwrite and fsync, each rank its own part of one file
    double write();      ///< until it is durable
    double copy();       ///< as many bytes in memory
    double stall();      ///< for which an asynchronous checkpoint stops training
    double hash();       ///< what the checksum header's checksums cost a write
    double raw_read();   ///< after raw_write
    double load();       ///< after write: verified and read

    std::uint64_t bytes() const { return state_.whole_bytes(); }
    bool has_background() const { return background_.has_value(); }

  private:
    double timed(std::function<void()> const& work) const;
    void forget_last() const;
    std::filesystem::path raw() const { return directory_ / "raw"; }

    comm::Communicator const& world_;
    TrialState state_;
    std::vector<std::byte> copy_;
    std::filesystem::path directory_;
    checkpoint::Store store_;
    std::optional<checkpoint::BackgroundWriter> background_;
};

} // namespace lockstep::measure
