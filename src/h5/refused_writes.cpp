#include "refused_writes.hpp"

#include "comm/native.hpp"

#include <cerrno>
#include <dlfcn.h>

namespace lockstep::h5 {

namespace {

thread_local Disk* noting = nullptr;

constexpr int attempts = 4; // a read at the file's end stays short

/// The function of this name behind ours, which is the library's.
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
    for (int attempt = 1; noting != nullptr && attempt < attempts && refusal() == 0 &&
                          !is_whole(result, type, count, status);
         ++attempt) {
        errno = 0;
        result = again();
    }
    return result;
}

/// The result of a write as HDF5 is to hear it.
int heard(int result, MPI_Datatype type, int count, MPI_Status* status) {
    int const reason = refusal();
    if (noting == nullptr || is_whole(result, type, count, status)) {
        return result;
    }
    noting->note(reason != 0 ? reason : EIO);
    if (int size = 0; status != MPI_STATUS_IGNORE && PMPI_Type_size(type, &size) == MPI_SUCCESS) {
        PMPI_Status_set_elements(status, MPI_BYTE, count * size);
    }
    return MPI_SUCCESS;
}

} // namespace

RefusedWrites::RefusedWrites(Disk& disk) : outer_(noting) {
    noting = outer_ != nullptr ? outer_ : &disk;
}

RefusedWrites::~RefusedWrites() {
    noting = outer_;
}

} // namespace lockstep::h5

// By MPI's profiling interface these take the place of the library's own. HDF5 calls MPI_; or a
// preloaded tool does, whose own MPI_ is found first, and which then calls PMPI_. So both are here,
// and the library's PMPI_ is the next one.
extern "C" {

#define LOCKSTEP_PARAMETERS(DATA)                                                                  \
    MPI_File file, MPI_Offset offset, DATA data, int count, MPI_Datatype type, MPI_Status *status
#define LOCKSTEP_ARGUMENTS file, offset, data, count, type, status
#define LOCKSTEP_NEXT(NAME) lockstep::h5::next<decltype(NAME)>(#NAME)
#define LOCKSTEP_PERSIST(FIRST, AGAIN)                                                             \
    lockstep::h5::persist(                                                                         \
        type, count, status, [&] { return LOCKSTEP_NEXT(FIRST)(LOCKSTEP_ARGUMENTS); },             \
        [&] { return LOCKSTEP_NEXT(AGAIN)(LOCKSTEP_ARGUMENTS); })

int PMPI_File_read_at(LOCKSTEP_PARAMETERS(void*)) {
    return LOCKSTEP_PERSIST(PMPI_File_read_at, PMPI_File_read_at);
}
int PMPI_File_read_at_all(LOCKSTEP_PARAMETERS(void*)) {
    return LOCKSTEP_PERSIST(PMPI_File_read_at_all, PMPI_File_read_at);
}
int PMPI_File_write_at(LOCKSTEP_PARAMETERS(void const*)) {
    return lockstep::h5::heard(LOCKSTEP_PERSIST(PMPI_File_write_at, PMPI_File_write_at), type,
                               count, status);
}
int PMPI_File_write_at_all(LOCKSTEP_PARAMETERS(void const*)) {
    return lockstep::h5::heard(LOCKSTEP_PERSIST(PMPI_File_write_at_all, PMPI_File_write_at), type,
                               count, status);
}
int PMPI_File_sync(MPI_File file) {
    errno = 0;
    return lockstep::h5::heard(LOCKSTEP_NEXT(PMPI_File_sync)(file), MPI_BYTE, 0, MPI_STATUS_IGNORE);
}

int MPI_File_read_at(LOCKSTEP_PARAMETERS(void*)) {
    return PMPI_File_read_at(LOCKSTEP_ARGUMENTS);
}
int MPI_File_read_at_all(LOCKSTEP_PARAMETERS(void*)) {
    return PMPI_File_read_at_all(LOCKSTEP_ARGUMENTS);
}
int MPI_File_write_at(LOCKSTEP_PARAMETERS(void const*)) {
    return PMPI_File_write_at(LOCKSTEP_ARGUMENTS);
}
int MPI_File_write_at_all(LOCKSTEP_PARAMETERS(void const*)) {
    return PMPI_File_write_at_all(LOCKSTEP_ARGUMENTS);
}
int MPI_File_sync(MPI_File file) {
    return PMPI_File_sync(file);
}

} // extern "C"
