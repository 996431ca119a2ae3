#pragma once

#include "lockstep/nn/model.hpp"

namespace lockstep::nn {

/// A network whose samples have a number of rows each, and which gives [n, outputs, places] of
/// which a sample's own are the first ones.
class SequenceModel : public Model {
  public:
    /// How many of the places belong to a sample of so many rows; the others are there because of
    /// longer samples in its batch.
    ///
    /// Shape  rows [n] int64 on the CPU; as returned
    virtual torch::Tensor output_lengths(torch::Tensor const& rows) const = 0;
};

} // namespace lockstep::nn
