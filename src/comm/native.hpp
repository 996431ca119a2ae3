#pragma once

#include "comm/collectives.hpp"
#include "lockstep/comm/communicator.hpp"

#include <source_location>
#include <string_view>

// Open MPI's removed C++ bindings would come in with mpi.h.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

namespace lockstep::comm {

/// Include this only in sources that call MPI themselves, never in a header.
struct Communicator::Native {
    MPI_Comm handle = MPI_COMM_NULL;
};

/// The handle, which the communicator still owns. Not collective.
MPI_Comm raw(Communicator const& comm) noexcept;

/// Throws an `Error` (69) that names the call and has MPI's own text, unless `code` is success.
/// Works because every communicator of ours has MPI_ERRORS_RETURN set.
void check(int code, std::string_view call,
           std::source_location at = std::source_location::current());

/// The MPI type of an element.
template <Element T>
MPI_Datatype datatype() {
    if constexpr (std::same_as<T, std::byte>) {
        return MPI_BYTE;
    } else if constexpr (std::same_as<T, int>) {
        return MPI_INT;
    } else if constexpr (std::same_as<T, std::int64_t>) {
        return MPI_INT64_T;
    } else if constexpr (std::same_as<T, std::uint64_t>) {
        return MPI_UINT64_T;
    } else if constexpr (std::same_as<T, float>) {
        return MPI_FLOAT;
    } else {
        return MPI_DOUBLE;
    }
}

} // namespace lockstep::comm
