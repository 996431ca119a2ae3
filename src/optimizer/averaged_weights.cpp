#include "optimizer/averaged_weights.hpp"

namespace lockstep::train {

AveragedWeights::~AveragedWeights() {
    if (kept_.defined()) {
        torch::NoGradGuard const no_grad;
        parameters_.copy_(kept_);
        restored_();
    }
}

} // namespace lockstep::train
