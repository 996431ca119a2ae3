#pragma once

#include "lockstep/nn/model.hpp"

namespace lockstep::nn {

/// Batch norm whose statistics are those of all replicas' samples together, in forward and in
/// backward (Ioffe, Szegedy, arXiv 1502.03167, over one big batch), for inputs [n, channels, …].
/// Parameters and buffers have the names and meaning of torch's BatchNorm. Sums travel in double:
/// first counts and sums, then squares about the common mean. In evaluation, and where there is one
/// replica, it is the usual one.
class SyncBatchNormImpl : public torch::nn::Module {
  public:
    SyncBatchNormImpl(std::int64_t channels, std::shared_ptr<ReplicaLink> link);

    /// Collective  over all replicas, while training
    torch::Tensor forward(torch::Tensor const& inputs);

    torch::Tensor weight;
    torch::Tensor bias;
    torch::Tensor running_mean;
    torch::Tensor running_var;
    torch::Tensor num_batches_tracked;

  private:
    std::shared_ptr<ReplicaLink> link_;
};
TORCH_MODULE(SyncBatchNorm);

} // namespace lockstep::nn
