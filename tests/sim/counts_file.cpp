#include "counts_file.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <system_error>
#include <unistd.h>

namespace lockstep::sim {

CountsFile::CountsFile(std::string const& directory) {
    if (directory.empty()) {
        counts_ = std::make_shared<Counts>();
        return;
    }
    auto const path = directory + "/" + std::to_string(::getpid());
    int const file = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (file < 0 || ::ftruncate(file, sizeof(Counts)) != 0) {
        throw std::system_error(errno, std::generic_category(), path);
    }
    void* const at = ::mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    if (at == MAP_FAILED) {
        throw std::system_error(errno, std::generic_category(), path);
    }
    counts_ = {static_cast<Counts*>(at), [](Counts* counts) { ::munmap(counts, sizeof(Counts)); }};
}

} // namespace lockstep::sim
