#pragma once

#include "checkpoint/content.hpp"

#include <cstdint>

namespace lockstep::train {

// A file of outputs is a checkpoint file of one array; see docs/formats.md.
constexpr char const* outputs_array = "values"; ///< of all samples, one after the other
using checkpoint::outputs_view;                 ///< the same as [samples, outputs…]

// Values of its record.
constexpr char const* hash_of_data = "data";       ///< TeacherOutputs::hash_of
constexpr char const* hash_of_outputs = "outputs"; ///< neither negative nor 0
constexpr char const* hash_of_model = "teacher";   ///< of the weights, to tell teachers apart
constexpr char const* task_note = "task";          ///< task.kind

/// Samples whose outputs are hashed together, the first with sample 0; the sum of the hashes is
/// that of all.
constexpr std::int64_t outputs_batch = 128;

/// A hash as a value of a record: neither negative nor 0.
constexpr std::int64_t recorded(std::uint64_t hash) {
    return static_cast<std::int64_t>(hash >> 1 | 1);
}

} // namespace lockstep::train
