#pragma once

#include "program/archive.hpp"

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

namespace lockstep::program {

/// By name; names of tied weights have the same tensor.
using Tensors = std::map<std::string, at::Tensor>;

/// The parameters, buffers and constants that a program of the archive comes with, on the CPU.
///
/// Throws  Error 65 for a damaged archive; 64 for a tensor that is stored as a pickle
Tensors read_tensors(Archive const& archive, std::string const& program);

} // namespace lockstep::program
