#include "h5/refused_writes.hpp"

#include "comm/native.hpp"

#include <cerrno>
#include <dlfcn.h>

#include "intercepted.hpp"

namespace lockstep::app {

namespace {

constexpr int attempts = 4; // a read at the file's end stays short

/// The function of this name behind ours: MPI's, or that of a tool that is preloaded and calls
/// MPI's.
template <class Function>
Function* next(char const* name) {
    return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

/// Whether a call moved all its bytes. MPI-IO may say that it failed, or tell of fewer of them.
bool is_whole(int result, MPI_Datatype type, int count, MPI_Status const* status) {
    int size = 0;
    int done = 0;
    return result == MPI_SUCCESS &&
           (status == MPI_STATUS_IGNORE ||
            (PMPI_Type_size(type, &size) == MPI_SUCCESS &&
             PMPI_Get_elements(status, MPI_BYTE, &done) == MPI_SUCCESS && done >= count * size));
}

/// Why a call was not whole: MPI does not tell, but the system just did. 0: it was cut short.
int refusal() {
    return errno == EINTR || errno == EAGAIN ? 0 : errno;
}

/// `first`, and where it was cut short, the whole of it `again`, which is not a collective call.
template <class First, class Again>
int persist(MPI_Datatype type, int count, MPI_Status* status, First const& first,
            Again const& again) {
    errno = 0;
    int result = first();
    for (int attempt = 1; h5::RefusedWrites::disk() != nullptr && attempt < attempts &&
                          refusal() == 0 && !is_whole(result, type, count, status);
         ++attempt) {
        errno = 0;
        result = again();
    }
    return result;
}

/// The result of a write as HDF5 is to hear it.
int heard(int result, MPI_Datatype type, int count, MPI_Status* status) {
    int const reason = refusal();
    auto* const disk = h5::RefusedWrites::disk();
    if (disk == nullptr || is_whole(result, type, count, status)) {
        return result;
    }
    disk->note(reason != 0 ? reason : EIO);
    if (int size = 0; status != MPI_STATUS_IGNORE && PMPI_Type_size(type, &size) == MPI_SUCCESS) {
        PMPI_Status_set_elements(status, MPI_BYTE, count * size);
    }
    return MPI_SUCCESS;
}

} // namespace

void link_refused_writes() noexcept {}

} // namespace lockstep::app

// HDF5's calls come here first, and go from here to a preloaded tool, if there is one, or to MPI.
extern "C" {

#define LOCKSTEP_PARAMETERS(DATA)                                                                  \
    MPI_File file, MPI_Offset offset, DATA data, int count, MPI_Datatype type, MPI_Status *status
#define LOCKSTEP_ARGUMENTS file, offset, data, count, type, status
#define LOCKSTEP_NEXT(NAME) lockstep::app::next<decltype(NAME)>(#NAME)
#define LOCKSTEP_PERSIST(FIRST, AGAIN)                                                             \
    lockstep::app::persist(                                                                        \
        type, count, status, [&] { return LOCKSTEP_NEXT(FIRST)(LOCKSTEP_ARGUMENTS); },             \
        [&] { return LOCKSTEP_NEXT(AGAIN)(LOCKSTEP_ARGUMENTS); })

int MPI_File_read_at(LOCKSTEP_PARAMETERS(void*)) {
    return LOCKSTEP_PERSIST(MPI_File_read_at, MPI_File_read_at);
}
int MPI_File_read_at_all(LOCKSTEP_PARAMETERS(void*)) {
    return LOCKSTEP_PERSIST(MPI_File_read_at_all, MPI_File_read_at);
}
int MPI_File_write_at(LOCKSTEP_PARAMETERS(void const*)) {
    return lockstep::app::heard(LOCKSTEP_PERSIST(MPI_File_write_at, MPI_File_write_at), type, count,
                                status);
}
int MPI_File_write_at_all(LOCKSTEP_PARAMETERS(void const*)) {
    return lockstep::app::heard(LOCKSTEP_PERSIST(MPI_File_write_at_all, MPI_File_write_at), type,
                                count, status);
}
int MPI_File_sync(MPI_File file) {
    errno = 0;
    return lockstep::app::heard(LOCKSTEP_NEXT(MPI_File_sync)(file), MPI_BYTE, 0, MPI_STATUS_IGNORE);
}

} // extern "C"
