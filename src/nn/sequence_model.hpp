#pragma once

#include "lockstep/nn/model.hpp"

namespace lockstep::nn {

/// A network for ragged samples that returns [n, outputs, positions]; a sample's own positions are
/// the first ones.
class SequenceModel : public Model {
  public:
    /// How many of the positions belong to a sample with that many rows; the others are padding for
    /// longer samples in the batch.
    ///
    /// Shape  rows [n] int64 on the CPU; as returned
    virtual torch::Tensor output_lengths(torch::Tensor const& rows) const = 0;
};

} // namespace lockstep::nn
