#pragma once

#include "lockstep/h5/storage.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::data {

/// An input or a target, which every sample has.
struct FieldInfo {
    std::string name;              ///< of its dataset in the files
    h5::Type type = h5::Type::u8;  ///< as stored
    h5::Shape shape;               ///< of a sample; ragged: of one of its rows
    bool whole = false;            ///< handed out as whole numbers; else as float32
    bool ragged = false;           ///< the number of rows differs between samples
    std::int64_t vocabulary = 0;   ///< tokens: whole numbers below this; 0: not known
    std::int64_t end_of_text = -1; ///< the token after a document; -1: none

    /// Whether it is one whole number per sample, as a class label is.
    bool is_label() const {
        return whole && !ragged &&
               std::all_of(shape.begin(), shape.end(), [](auto extent) { return extent == 1; });
    }

    bool operator==(FieldInfo const&) const = default;
};

/// The values of one field for all samples of a batch, one sample after the other.
struct Values {
    std::vector<float>
        reals; ///< of a field that is not whole: [samples, sample…]; ragged: [rows, row…]
    std::vector<std::int64_t> wholes;  ///< of a whole field, of the same shapes
    std::vector<std::int64_t> offsets; ///< ragged: sample i has rows [offsets[i], offsets[i + 1])
};

/// Samples that are handed to a replica together. The buffers are reused.
struct Batch {
    std::vector<std::int64_t> indices;
    std::vector<Values> fields; ///< inputs, then targets, as the data set lists them
    std::size_t first_target = 1;

    /// For data sets with one input of real values and one label per sample; empty for others.
    ///
    /// Shape   inputs [indices, sample…], targets [indices]
    /// Throws  std::out_of_range where there are no targets; a batch without inputs is not allowed
    std::vector<float> const& inputs() const { return fields.front().reals; }
    std::vector<std::int64_t> const& targets() const { return fields.at(first_target).wholes; }
};

/// Buffers that are reused from read to read; each thread has its own.
struct Scratch {
    std::vector<std::byte> raw;
    std::vector<std::byte> stored;
    std::vector<std::byte> spare;
    std::vector<std::size_t> order;
};

} // namespace lockstep::data
