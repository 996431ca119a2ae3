#include "address_space.hpp"

#include <cerrno>
#include <sys/mman.h>
#include <system_error>
#include <unistd.h>

namespace lockstep::sim {

namespace {

[[noreturn]] void fail(char const* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

std::byte* map(int file, std::size_t bytes, int protection) {
    // Shared, since private memory counts where a process limits its data (RLIMIT_DATA).
    void* const at = ::mmap(nullptr, bytes, protection, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (at == MAP_FAILED) {
        fail("sim: mmap");
    }
    return static_cast<std::byte*>(at);
}

} // namespace

AddressSpace::AddressSpace(char const* name, std::size_t bytes, bool open_to_host) : bytes_(bytes) {
    int const file = ::memfd_create(name, MFD_CLOEXEC);
    if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) != 0) {
        fail("sim: memfd_create");
    }
    host_ = map(file, bytes, open_to_host ? PROT_READ | PROT_WRITE : PROT_NONE);
    kernels_ = map(file, bytes, PROT_READ | PROT_WRITE);
    ::close(file);
}

AddressSpace::~AddressSpace() {
    ::munmap(host_, bytes_);
    ::munmap(kernels_, bytes_);
}

} // namespace lockstep::sim
