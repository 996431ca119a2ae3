#pragma once

#include "checkpoint/weights.hpp"
#include "comm/rounding.hpp"

namespace lockstep::checkpoint {

/// Whether the file begins like a safetensors file (the length of a JSON text, and that text), or
/// is an index of several (….safetensors.index.json); a damaged file of no other kind is one if its
/// name says so. The format is described at huggingface.co/docs/safetensors.
///
/// Throws  Error 66 when there is no such file
bool is_safetensors(std::filesystem::path const& path);

/// The safetensors file of a directory, or the index where its tensors are in several files;
/// another path is returned as it is.
///
/// Throws  Error 66 for a directory without such a file
std::filesystem::path safetensors_of(std::filesystem::path const& path);

/// The tensors of a safetensors file, or of all files that an index names: F16, BF16 and F64 are
/// read as float32, whole numbers as int64. Nothing in a file is trusted: its header is checked
/// against its length first, and an index may only name files beside it.
///
/// Throws  Error 66 when there is no such file, or one of those in an index is missing; 65 when one
///         is damaged, has numbers of another type, or lacks a tensor that the index places there
std::unique_ptr<Weights> open_safetensors(std::filesystem::path const& path);

/// Writes the weights as a safetensors file, one tensor after the other in memory: a temporary
/// name, fsync, rename. Real values are stored as F32, F16 or BF16 according to `rounding`, whole
/// numbers as I64. `model` becomes the file's model_note; empty: that of the weights stays.
///
/// Throws  Error 64 when rounding makes a value infinite, 73 when the file cannot be created, 74
///         for a full disk
void write_safetensors(std::filesystem::path const& path, Weights const& weights,
                       comm::Rounding rounding = comm::Rounding::none,
                       std::string const& model = "");

} // namespace lockstep::checkpoint
