#pragma once

#include "lockstep/data/batch.hpp"

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::nn {

/// As people read it: "[8, 3, 32, 32]".
std::string sizes_text(torch::IntArrayRef sizes);

/// The values of a batch's samples from one dataset of the files.
///
/// Shape  values [n, sample…]; of samples with a number of rows each: [rows of all samples, row…]
struct Field {
    torch::Tensor values; ///< float32, or int64 where the dataset holds whole numbers
    torch::Tensor
        lengths; ///< rows of each sample, int64 on the CPU; undefined: all have the same shape

    std::int64_t samples() const { return (lengths.defined() ? lengths : values).size(0); }
    /// The values, with all samples padded to as many rows as the longest has.
    ///
    /// Shape   [n, rows, row…], zeros after a sample's own rows; `values` where `lengths` is
    ///         undefined
    torch::Tensor padded() const;
};

/// The inputs of a batch, or its targets, in the order in which the deck names them.
class Fields {
  public:
    Fields() = default;
    Fields(torch::Tensor only) : fields_{{std::move(only), {}}} {}
    explicit Fields(std::vector<Field> fields) : fields_(std::move(fields)) {}

    std::size_t size() const noexcept { return fields_.size(); }
    /// Throws  std::out_of_range, as the functions below, where there is no such field
    Field const& operator[](std::size_t at) const { return fields_.at(at); }
    auto begin() const { return fields_.begin(); }
    auto end() const { return fields_.end(); }
    std::int64_t samples() const { return fields_.at(0).samples(); }
    /// One sample, as a batch of its own; its tensors are views.
    Fields sample(std::int64_t at) const;
    /// The values of the first field: [samples, sample…]; ragged: all rows, [rows, row…].
    torch::Tensor const& only() const { return fields_.at(0).values; }

  private:
    std::vector<Field> fields_;
};

/// Samples of zeros, to try a model on, float32 or int64 as each field is handed out.
///
/// Shape  of each field [samples, sample…]; ragged: 64 rows per sample, [64 * samples, row…]
Fields zeros(std::vector<data::FieldInfo> const& infos, std::int64_t samples, torch::Device device);

} // namespace lockstep::nn
