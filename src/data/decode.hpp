#pragma once

#include "lockstep/h5/storage.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace lockstep::data {

/// Undoes what a chunk's bytes went through when they were written.
///
/// `stored` and `spare` are buffers that lose their contents. Without filters the bytes are copied.
/// Shape   into: all bytes of the chunk, whole also at the edge of the dataset
/// Throws  Error 65 that says what is wrong with the bytes, not where they lie
void decode_chunk(std::span<h5::Filter const> filters, std::size_t element_bytes,
                  std::vector<std::byte>& stored, std::vector<std::byte>& spare,
                  std::span<std::byte> into);

/// Fletcher's checksum of 32 bits over big-endian words of 16, as HDF5 stores it.
std::uint32_t fletcher32(std::span<std::byte const> bytes);

} // namespace lockstep::data
