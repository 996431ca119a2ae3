#pragma once

#include "checkpoint/record.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>

namespace lockstep::checkpoint {

/// Makes room on the disk for so many bytes; whether it has.
using MakeRoom = std::function<bool(std::uint64_t bytes)>;

/// Makes an empty file and throws unless it may grow to `bytes`: 73 when it cannot be made, 74 when
/// the disk, a quota or a limit is too small. HDF5 replaces the file later. The test does not use
/// HDF5, since a failed close of a file breaks the whole library (1.10.8: it crashes when MPI
/// ends). Where the disk or a quota is too small, `make_room` is called with the bytes that are
/// needed, and the space is tried again for as long as it says that it has made room.
void try_space(std::filesystem::path const& path, std::uint64_t bytes,
               MakeRoom const& make_room = {});

/// An upper estimate of the bytes that HDF5 and the record need besides the arrays.
std::uint64_t overhead_of(Record const& record, std::size_t datasets);

} // namespace lockstep::checkpoint
