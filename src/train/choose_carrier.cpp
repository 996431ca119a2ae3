#include "lockstep/base/error.hpp"
#include "lockstep/comm/agree.hpp"
#include "lockstep/comm/collectives.hpp"
#include "lockstep/comm/nccl.hpp"
#include "lockstep/train/reduction.hpp"

namespace lockstep::train {

std::unique_ptr<Carrier> choose_carrier(comm::Communicator const& comm,
                                        config::Communication const& options,
                                        torch::Device device) {
    bool const wanted = options.backend == "nccl";
    bool const all_on_gpus = comm::all_ranks(comm, device.is_cuda());
    comm::agree(comm, "choosing what carries gradients", [&] {
        if (wanted && !comm::nccl_available()) {
            throw Error(ExitCode::unavailable,
                        {"communication.backend = nccl", "the program was built without NCCL",
                         "Configure with -DLOCKSTEP_WITH_NCCL=ON, or set communication.backend = "
                         "mpi"});
        }
        if (wanted && !all_on_gpus) {
            throw Error(ExitCode::unavailable,
                        {"communication.backend = nccl", "not every rank computes on a GPU",
                         "Set communication.backend = auto, or run.device = cuda"});
        }
    });
    bool const possible = comm::nccl_available() && all_on_gpus;
    // NCCL refuses ranks that share a GPU; these go over MPI.
    if (options.backend == "mpi" || !possible ||
        !comm::each_rank_has_own_device(comm, device.index())) {
        return mpi_carrier(comm);
    }
    return nccl_carrier(comm, device, static_cast<double>(options.timeout_seconds));
}

} // namespace lockstep::train
