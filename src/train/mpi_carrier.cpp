#include "lockstep/comm/collectives.hpp"
#include "lockstep/train/reduction.hpp"

#include <algorithm>

namespace lockstep::train {

namespace {

/// Point-to-point messages of at most this many elements, far below MPI's limit of int counts.
constexpr std::int64_t most_elements = std::int64_t{1} << 28;

class MpiCarrier : public Carrier {
  public:
    explicit MpiCarrier(comm::Communicator const& comm) : comm_(comm) {}

    std::string name() const override { return "MPI"; }

    torch::Tensor scatter_slices(torch::Tensor const& device_whole,
                                 std::vector<std::int64_t> const& bounds) override {
        auto const whole = device_whole.cpu(); // itself, when it is there already
        auto const me = static_cast<std::size_t>(comm_.rank());
        auto const own = bounds[me + 1] - bounds[me];
        if (!parts_.defined() || parts_.size(1) != own) {
            parts_ = torch::empty({comm_.size(), own}, torch::kFloat32);
        }
        std::vector<MPI_Request> requests;
        auto* const into = parts_.mutable_data_ptr<float>();
        auto const* const from = whole.const_data_ptr<float>();
        for (int rank = 0; rank < comm_.size(); ++rank) {
            auto const at = static_cast<std::size_t>(rank);
            if (rank == comm_.rank()) {
                std::copy(from + bounds[at], from + bounds[at + 1], into + rank * own);
                continue;
            }
            post(requests, own, [&](std::int64_t first, int count, MPI_Request* request) {
                return MPI_Irecv(into + rank * own + first, count, MPI_FLOAT, rank, 0, comm_.raw(),
                                 request);
            });
            post(requests, bounds[at + 1] - bounds[at],
                 [&](std::int64_t first, int count, MPI_Request* request) {
                     return MPI_Isend(from + bounds[at] + first, count, MPI_FLOAT, rank, 0,
                                      comm_.raw(), request);
                 });
        }
        comm::check(
            MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE),
            "MPI_Waitall");
        return parts_.to(device_whole.device());
    }

    void gather_slices(torch::Tensor const& device_whole,
                       std::vector<std::int64_t> const& bounds) override {
        auto const whole = device_whole.cpu();
        comm::all_gather_slices(
            comm_,
            std::span(whole.mutable_data_ptr<float>(), static_cast<std::size_t>(whole.numel())),
            bounds);
        if (!device_whole.is_cpu()) {
            device_whole.copy_(whole);
        }
    }

  private:
    template <class Call>
    static void post(std::vector<MPI_Request>& requests, std::int64_t elements, Call const& call) {
        for (std::int64_t first = 0; first < elements; first += most_elements) {
            auto const count = static_cast<int>(std::min(most_elements, elements - first));
            comm::check(call(first, count, &requests.emplace_back()), "MPI_Isend or MPI_Irecv");
        }
    }

    comm::Communicator const& comm_;
    torch::Tensor parts_; ///< reused in every step
};

} // namespace

std::unique_ptr<Carrier> mpi_carrier(comm::Communicator const& comm) {
    return std::make_unique<MpiCarrier>(comm);
}

} // namespace lockstep::train
