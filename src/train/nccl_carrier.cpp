#include "lockstep/comm/nccl.hpp"
#include "lockstep/train/reduction.hpp"

#include <c10/cuda/CUDAStream.h>

namespace lockstep::train {

namespace {

comm::DeviceView view_of(torch::Tensor const& tensor) {
    return {tensor.const_data_ptr(), static_cast<std::size_t>(tensor.numel()),
            comm::DeviceType::float32};
}

comm::DeviceSpan span_of(torch::Tensor const& tensor) {
    return {tensor.mutable_data_ptr(), static_cast<std::size_t>(tensor.numel()),
            comm::DeviceType::float32};
}

/// Over NCCL, whose messages run on a stream of their own; the stream that computes is put behind
/// them, the host never waits.
class NcclCarrier : public Carrier {
  public:
    NcclCarrier(comm::Communicator const& comm, torch::Device device, double timeout_seconds)
        : rank_(comm.rank()), ranks_(comm.size()),
          nccl_(comm, {.device = device.index(), .timeout_seconds = timeout_seconds}) {}

    std::string name() const override { return "NCCL " + comm::nccl_version(); }

    torch::Tensor scatter_slices(torch::Tensor const& whole,
                                 std::vector<std::int64_t> const& bounds) override {
        auto const slice_of = [&](int rank) { return slice(whole, bounds, rank); };
        auto const own = slice_of(rank_).numel();
        if (!parts_.defined() || parts_.size(1) != own) {
            parts_ = torch::empty({ranks_, own}, whole.options());
        }
        parts_[rank_].copy_(slice_of(rank_));
        exchange([&](int rank) {
            return comm::DeviceExchange{rank, view_of(slice_of(rank)), span_of(parts_[rank])};
        });
        return parts_;
    }

    void gather_slices(torch::Tensor const& whole,
                       std::vector<std::int64_t> const& bounds) override {
        exchange([&](int rank) {
            return comm::DeviceExchange{rank, view_of(slice(whole, bounds, rank_)),
                                        span_of(slice(whole, bounds, rank))};
        });
    }

  private:
    static torch::Tensor slice(torch::Tensor const& whole, std::vector<std::int64_t> const& bounds,
                               int rank) {
        auto const at = static_cast<std::size_t>(rank);
        return whole.narrow(0, bounds[at], bounds[at + 1] - bounds[at]);
    }

    template <class Piece>
    void exchange(Piece const& piece_with) {
        std::vector<comm::DeviceExchange> pieces;
        for (int rank = 0; rank < ranks_; ++rank) {
            if (rank != rank_) {
                pieces.push_back(piece_with(rank));
            }
        }
        auto* const compute = c10::cuda::getCurrentCUDAStream().stream();
        nccl_.exchange(pieces, compute);
        nccl_.wait(compute);
        nccl_.check_async();
    }

    int rank_;
    int ranks_;
    comm::NcclCommunicator nccl_;
    torch::Tensor parts_; ///< reused in every step
};

} // namespace

std::unique_ptr<Carrier> nccl_carrier(comm::Communicator const& comm, torch::Device device,
                                      double timeout_seconds) {
    return std::make_unique<NcclCarrier>(comm, device, timeout_seconds);
}

} // namespace lockstep::train
