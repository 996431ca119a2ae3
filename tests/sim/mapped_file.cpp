#include "mapped_file.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <system_error>
#include <unistd.h>

namespace lockstep::sim {

std::shared_ptr<void> mapped_file(std::string const& directory, std::size_t bytes) {
    auto const path = directory + "/" + std::to_string(::getpid());
    int const file = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) != 0) {
        throw std::system_error(errno, std::generic_category(), path);
    }
    void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    if (at == MAP_FAILED) {
        throw std::system_error(errno, std::generic_category(), path);
    }
    return {at, [bytes](void* mapped) { ::munmap(mapped, bytes); }};
}

} // namespace lockstep::sim
