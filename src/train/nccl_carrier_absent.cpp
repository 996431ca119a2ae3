#include "lockstep/base/error.hpp"
#include "lockstep/train/reduction.hpp"

namespace lockstep::train {

std::unique_ptr<Carrier> nccl_carrier(comm::Communicator const&, torch::Device, double) {
    throw Error(ExitCode::unavailable,
                {"communication.backend = nccl", "the program was built without NCCL",
                 "Configure with -DLOCKSTEP_WITH_NCCL=ON, or set communication.backend = mpi"});
}

} // namespace lockstep::train
