#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::sim {

/// What is done where two uses of memory are not ordered.
enum class Check { raise, report, off };

/// LOCKSTEP_SIM="devices=4,mib=512,delay-us=300,seed=2,check=report,drop=17,hang=900,lose=5,
/// counts=DIR,calls=DIR,kernels=off"
struct Options {
    int devices = 2;
    std::size_t bytes = std::size_t{2} << 30;  ///< of each device
    std::size_t pinned = std::size_t{1} << 30; ///< that can be pinned on the host
    double delay_us = 0;                       ///< longest pause of a stream before a kernel
    std::uint64_t seed = 1;                    ///< of the pauses
    Check check = Check::raise;
    std::optional<std::uint64_t> drop; ///< this wait of a stream is left out: a planted mistake
    std::optional<std::uint64_t> hang; ///< this kernel never ends: a planted failure
    std::optional<std::uint64_t> lose; ///< as NCCL's operation of rank 1 it fails, and hangs
    std::string
        counts; ///< where each process keeps its counts in a file (counts_file.hpp); empty: nowhere
    std::string calls; ///< the same for its calls, by name (call_counts.hpp)
    /// Off: what is launched counts as done at once, and does nothing; the host finds zeros. What a
    /// step still takes is the host's part of it.
    bool kernels = true;
};

/// Throws  std::invalid_argument for a key or a value that is none
Options options_of_environment();

} // namespace lockstep::sim
