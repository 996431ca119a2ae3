#pragma once

#include "lockstep/nn/model.hpp"
#include "program/batch_norm.hpp"

#include <memory>
#include <utility>

namespace lockstep::nn {

/// `SyncBatchNorm` in training, where there are several replicas. `norm` has weight and bias, or
/// neither.
///
/// Returns     whether there was any sample, and the normalised inputs
/// Collective  over all replicas
std::pair<bool, torch::Tensor> synchronised(torch::Tensor const& inputs,
                                            program::BatchNormTerms const& norm,
                                            std::shared_ptr<ReplicaLink> const& link);

/// Batch norm whose statistics are those of all replicas' samples together, in forward and in
/// backward (Ioffe, Szegedy, arXiv 1502.03167, over one big batch), for inputs [n, channels, …].
/// Parameters and buffers have the names and meaning of torch's BatchNorm. Sums are exchanged in
/// double: first counts and sums, then squares about the common mean. In evaluation, and with one
/// replica, it is the usual batch norm.
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
