#pragma once

#include "checkpoint/weights.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/nn/model.hpp"

#include <string>

namespace lockstep::train {

/// A file of weights whose tensors are not those of a model.
class OtherModel : public Error {
  public:
    explicit OtherModel(ErrorText text) : Error(ExitCode::data, std::move(text)) {}
};

/// Where a file holds a tensor of a model, under the model's name or that of another program.
struct StoredTensor {
    checkpoint::Weights::TensorInfo const* entry = nullptr; ///< null: nowhere
    nn::WeightSource source{};                              ///< how the tensor lies in the entry
    bool fits = false; ///< else the shapes differ; then it is the last entry that was looked at

    /// The name of the entry, and its shape; empty where there is none.
    std::string text() const;
};

/// Looks for a tensor in a file.
StoredTensor stored_tensor(torch::Tensor const& tensor, std::string const& name,
                           nn::Model const& model, checkpoint::Weights const& weights);

/// The values of a whole entry, in the shape of the entry.
///
/// Throws  as Weights::read
torch::Tensor values_of(checkpoint::Weights const& weights,
                        checkpoint::Weights::TensorInfo const& entry);

/// Gives a tensor the values that fit it.
///
/// Throws  as Weights::read
void fill(torch::Tensor const& tensor, StoredTensor const& stored,
          checkpoint::Weights const& weights);

} // namespace lockstep::train
