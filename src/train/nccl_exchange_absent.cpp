#include "lockstep/base/error.hpp"

#include "nccl_exchange.hpp"

namespace lockstep::train {

std::unique_ptr<comm::Exchange> nccl_exchange(comm::Communicator const&, torch::Device,
                                              NcclExchangeOptions const&) {
    throw Error(ExitCode::unavailable,
                {"communication.backend = nccl", "this program was built without NCCL",
                 "Configure with -DLOCKSTEP_WITH_NCCL=ON, or set communication.backend = mpi"});
}

} // namespace lockstep::train
