#pragma once

#include "lockstep/comm/communicator.hpp"
#include "lockstep/comm/replica_tree.hpp"
#include "lockstep/config/deck.hpp"

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::train {

/// Carries pieces of arenas between ranks: over MPI for host memory, over NCCL for CUDA memory.
class Carrier {
  public:
    virtual ~Carrier() = default;
    virtual std::string name() const = 0;

    /// Rank r gets [bounds[r], bounds[r+1]) of every rank's `whole`.
    ///
    /// Shape       whole [bounds.back()]; returns [ranks, own slice], by rank
    /// Collective  over all ranks
    virtual torch::Tensor scatter_slices(torch::Tensor const& whole,
                                         std::vector<std::int64_t> const& bounds) = 0;

    /// Every rank gets every rank's slice of `whole`, in place.
    ///
    /// Collective  over all ranks
    virtual void gather_slices(torch::Tensor const& whole,
                               std::vector<std::int64_t> const& bounds) = 0;
};

/// Over MPI; tensors in device memory are copied to the host and back. `comm` must outlive it.
/// Local.
std::unique_ptr<Carrier> mpi_carrier(comm::Communicator const& comm);

/// Over NCCL, for tensors on `device`, which no other rank of the host uses.
///
/// Collective  over `comm`
/// Throws      AgreedError 69 when NCCL cannot start; Error 69 when built without NCCL
std::unique_ptr<Carrier> nccl_carrier(comm::Communicator const& comm, torch::Device device,
                                      double timeout_seconds);

/// What communication.backend asks for; `auto` is NCCL where every rank has a GPU of its own and
/// the program was built with NCCL, else MPI.
///
/// Collective  over `comm`
/// Throws      AgreedError 69 when the deck asks for NCCL and it is not to be had
std::unique_ptr<Carrier> choose_carrier(comm::Communicator const& comm,
                                        config::Communication const& options, torch::Device device);

/// The sum over all replicas of gradients, in the order of the fixed tree.
class OrderedReduction {
  public:
    /// `nodes`: the subtree of each rank (comm::subtrees_of_ranks); `bounds`: the slices.
    OrderedReduction(Carrier& carrier, std::vector<comm::TreeNode> nodes,
                     std::vector<std::int64_t> bounds, int rank);

    /// This rank's slice of the sum over all replicas. `partial` is the sum over this rank's own
    /// subtree. Each rank receives its slice from all ranks, as much as in a ring, and adds them in
    /// tree order; so the sum is the same bits on any number of ranks.
    ///
    /// Shape       partial [bounds.back()]; returns [own slice]
    /// Collective  over all ranks
    torch::Tensor reduce(torch::Tensor const& partial);

    /// Makes all slices of `parameters` known to all ranks.
    ///
    /// Collective  over all ranks
    void share(torch::Tensor const& parameters);

    std::int64_t first() const { return bounds_[rank_]; }
    std::int64_t last() const { return bounds_[rank_ + 1]; }

  private:
    Carrier& carrier_;
    std::vector<comm::TreeNode> nodes_;
    std::vector<std::int64_t> bounds_;
    std::size_t rank_;
};

/// Sums of squares over the fixed grains of a slice, in double, in one fixed order each.
///
/// Shape  slice [n * grain] float32; returns [n]
std::vector<double> squares_by_grain(torch::Tensor const& slice);

} // namespace lockstep::train
