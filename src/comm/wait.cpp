#include "comm/wait.hpp"

namespace lockstep::comm {

std::string_view name_of(Wait wait) {
    switch (wait) {
    case Wait::nothing:
        return "nothing";
    case Wait::barrier:
        return "a barrier";
    case Wait::all_reduce:
        return "an all-reduce";
    case Wait::broadcast:
        return "a broadcast";
    case Wait::all_gather:
        return "an all-gather";
    case Wait::exchange:
        return "the exchange of gradients";
    case Wait::communicator:
        return "making or freeing a communicator";
    case Wait::file:
        return "a collective call on a file";
    case Wait::message:
        return "a message to or from another rank";
    case Wait::finalize:
        return "MPI_Finalize";
    }
    return "";
}

} // namespace lockstep::comm
