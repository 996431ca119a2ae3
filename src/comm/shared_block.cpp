#include "comm/shared_block.hpp"

#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <new>
#include <random>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace lockstep::comm {

namespace {

/// A name that nobody else has: containers that share /dev/shm have equal process numbers.
std::string random_name() {
    std::random_device source;
    auto const word = [&] { return std::to_string(source()); };
    return concat("/lockstep-", word(), "-", word(), "-", word());
}

/// The name of shared memory; its owner makes it go with this object.
class Name {
  public:
    Name(std::string text, bool owner) : text_(std::move(text)), owner_(owner) {}
    Name(Name const&) = delete;
    Name& operator=(Name const&) = delete;
    ~Name() {
        if (owner_) {
            ::shm_unlink(text_.c_str());
        }
    }
    Descriptor open(int flags) const {
        return Descriptor(::shm_open(text_.c_str(), flags, S_IRUSR | S_IWUSR));
    }

  private:
    std::string text_;
    bool owner_;
};

Error cannot(std::string const& what, std::size_t bytes, int code) {
    return {ExitCode::unavailable,
            {concat("the ranks of a host cannot share ", bytes_text(bytes), " of memory"),
             concat(what, " (", system_text(code), ")"),
             "Give the host or the container a larger /dev/shm (docker: --shm-size)"}};
}

void reserve(Descriptor const& file, std::size_t first, std::size_t bytes) {
    int const code =
        ::posix_fallocate(file.get(), static_cast<off_t>(first), static_cast<off_t>(bytes));
    if (code != 0) {
        throw cannot("the memory cannot be reserved", bytes, code);
    }
}

/// Limits of a process's data (RLIMIT_DATA) count the addresses of private memory, but not those of
/// memory that could be shared: of the latter, what has no pages yet costs nothing.
std::byte* alone(std::size_t bytes, bool sparse) {
    if (bytes == 0) {
        return nullptr;
    }
    void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            (sparse ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        throw std::bad_alloc();
    }
    return static_cast<std::byte*>(at);
}

std::byte* mapped(Descriptor const& file, std::size_t bytes) {
    void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (at == MAP_FAILED) {
        throw cannot("mmap failed", bytes, errno);
    }
    return static_cast<std::byte*>(at);
}

Descriptor opened(Name const& name, int flags, std::size_t bytes) {
    auto file = name.open(flags);
    if (file.get() < 0) {
        throw cannot("shm_open failed", bytes, errno);
    }
    return file;
}

} // namespace

SharedBlock::SharedBlock(std::size_t bytes, std::size_t kept)
    : data_(alone(bytes, kept < bytes)), size_(bytes), sparse_(kept < bytes) {}

SharedBlock::SharedBlock(Communicator const& host, std::size_t bytes, std::size_t kept)
    : size_(bytes), sparse_(kept < bytes) {
    if (host.size() == 1) {
        data_ = alone(bytes, sparse_);
        return;
    }
    auto text = random_name();
    broadcast_text(host, text);
    Descriptor file;
    {
        Name const name(text, host.is_root()); // of an empty file, until all have it open
        agree(host, "making shared memory", [&] {
            if (host.is_root()) {
                file = opened(name, O_CREAT | O_EXCL | O_RDWR, bytes);
            }
        });
        agree(host, "opening shared memory", [&] {
            if (!host.is_root()) {
                file = opened(name, O_RDWR, bytes);
            }
        });
    }
    agree(host, "reserving shared memory", [&] {
        if (host.is_root()) {
            reserve(file, 0, kept);
            if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) {
                throw cannot("ftruncate failed", bytes, errno);
            }
        }
    });
    try {
        agree(host, "mapping shared memory", [&] { data_ = mapped(file, bytes); });
    } catch (...) { // of another rank: nobody destroys an object that was not made
        if (data_ != nullptr) {
            ::munmap(data_, size_);
        }
        throw;
    }
    if (sparse_) {
        file_ = std::move(file);
    }
}

void SharedBlock::populate(std::span<std::byte const> part) const {
    if (file_.get() >= 0 && !part.empty()) {
        reserve(file_, static_cast<std::size_t>(part.data() - data_), part.size());
    }
}

void SharedBlock::replace(std::span<std::byte> part) const noexcept {
    if (file_.get() >= 0 && !part.empty()) {
        ::mmap(part.data(), part.size(), PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    }
}

/// Memory of a rank alone has its pages taken away, too: the next who touches it finds zeros.
void SharedBlock::discard(std::span<std::byte> part) const noexcept {
    static auto const page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    auto const begin = reinterpret_cast<std::uintptr_t>(part.data());
    auto const first = (begin + page - 1) / page * page;
    auto const last = (begin + part.size()) / page * page;
    if (first < last) { // a kernel that refuses keeps the pages, which costs memory only
        ::madvise(part.data() + (first - begin), last - first,
                  sparse_ ? MADV_REMOVE : MADV_DONTNEED);
    }
}

SharedBlock::~SharedBlock() {
    if (data_ != nullptr) {
        ::munmap(data_, size_);
    }
}

} // namespace lockstep::comm
