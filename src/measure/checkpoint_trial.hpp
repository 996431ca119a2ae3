#pragma once

#include "checkpoint/background_writer.hpp"
#include "checkpoint/store.hpp"
#include "lockstep/comm/communicator.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace lockstep::measure {

/// A state as AdamW has it, of which each rank holds a slice.
class TrialState {
  public:
    TrialState(comm::Communicator const& world, std::uint64_t bytes);

    checkpoint::Snapshot snapshot() const;
    std::span<std::byte const> bytes() const { return std::as_bytes(std::span(values_)); }
    std::uint64_t whole_bytes() const { return elements_ * sizeof(float) * arrays; }
    std::uint64_t first_byte() const { return first_ * sizeof(float) * arrays; }
    std::uint64_t first() const { return first_; }

  private:
    static constexpr std::uint64_t arrays = 3; ///< parameters and two moments

    std::uint64_t elements_;
    std::uint64_t first_; ///< of each array
    std::uint64_t slice_;
    std::vector<float> values_;
};

/// A checkpoint of such a state in a directory, and what bounds it. Every member is collective over
/// `world`, which must outlive the trial, and returns the seconds of the slowest rank.
class CheckpointTrial {
  public:
    CheckpointTrial(comm::Communicator const& world, std::uint64_t bytes,
                    std::filesystem::path directory);

    void settle() const; ///< until the disk has nothing to do
    double raw_write();  ///< as many bytes by pwrite and fsync, each rank its own part of one file
    double write();      ///< until it is durable
    double copy();       ///< as many bytes in memory
    double stall();      ///< for which an asynchronous one stops training
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

/// Makes a directory of a trial's own below `parent`, and removes it at the end, also when `work`
/// throws what all ranks agreed on.
///
/// Collective  over `world`
/// Throws      AgreedError 73 when it cannot be made, and what `work` throws
void in_trial_directory(comm::Communicator const& world, std::filesystem::path const& parent,
                        std::function<void(std::filesystem::path const&)> const& work);

} // namespace lockstep::measure
