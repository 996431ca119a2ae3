#pragma once

#include "lockstep/nn/model.hpp"
#include "nn/layer_modes.hpp"

#include <cstdint>
#include <vector>

namespace lockstep::nn {

/// A model is in evaluation mode while this exists; then it returns to its previous mode, and its
/// buffers to what they held. For all forwards that are not a step's: evaluations, trials,
/// teachers.
class EvaluationMode {
  public:
    explicit EvaluationMode(Model& model);
    EvaluationMode(EvaluationMode const&) = delete;
    EvaluationMode& operator=(EvaluationMode const&) = delete;
    ~EvaluationMode();

    /// Lets the next forward depend on its inputs and on `key` alone: buffers hold what they held
    /// at first, and random numbers follow from the key.
    ///
    /// Throws  as Model::settle_buffers
    void begin(std::uint64_t key) const;

  private:
    void restore() const;

    /// The buffers of one type and what they held: lists of one type are copied fast.
    struct Kept {
        std::vector<torch::Tensor> buffers;
        std::vector<torch::Tensor> values;
    };

    Model& model_;
    LayerModes modes_; ///< some layers may be at rest while others train
    std::vector<Kept> kept_;
};

} // namespace lockstep::nn
