#pragma once

#include "checkpoint/weights.hpp"

namespace lockstep::checkpoint {

/// Whether the file begins like a safetensors file (the length of a JSON text, and that text): its
/// documentation is at huggingface.co/docs/safetensors.
///
/// Throws  Error 66 when there is no such file
bool is_safetensors(std::filesystem::path const& path);

/// A safetensors file's tensors: F16, BF16 and F64 are read as float32, whole numbers as int64.
/// Nothing in the file is trusted: its header is checked against its length first.
///
/// Throws  Error 66 when there is no such file, 65 when it is damaged or has numbers of another
///         type
std::unique_ptr<Weights> open_safetensors(std::filesystem::path const& path);

/// Writes the weights as a safetensors file, one tensor after the other in memory: a temporary
/// name, fsync, rename.
///
/// Throws  Error 73 when the file cannot be created, 74 for a full disk
void write_safetensors(std::filesystem::path const& path, Weights const& weights);

} // namespace lockstep::checkpoint
