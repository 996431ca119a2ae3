#include "checkpoint/memory_copy.hpp"

#include "base/hash.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <string_view>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace lockstep::checkpoint {

namespace {

constexpr std::string_view copy_prefix = "lockstep-state-";
constexpr std::array<char, 16> copy_magic{'l', 'o', 'c', 'k', 's', 't', 'e', 'p',
                                          ' ', 's', 't', 'a', 't', 'e', ' ', '1'};
constexpr mode_t private_mode = S_IRUSR | S_IWUSR;

/// As it lies in the file; without gaps.
struct Raw {
    std::array<char, 16> magic;
    CopyHeader header;
    std::uint64_t hash; ///< of what is before
};
static_assert(sizeof(Raw) == 16 + sizeof(CopyHeader) + 8 && sizeof(Raw) <= copy_header_bytes);
static_assert(sizeof(CopyHeader) == 64);

std::uint64_t hash_of(Raw const& raw) {
    return hash64(std::as_bytes(std::span(&raw, 1)).first(offsetof(Raw, hash)));
}

Error no_memory(std::size_t bytes, int code) {
    return {ExitCode::unavailable,
            {concat("cannot keep ", bytes_text(bytes), " of the run's state in memory"),
             concat(memory_directory, ": ", system_text(code)),
             "Give the host or the container a larger /dev/shm, or set "
             "fault-tolerance.memory-copy-every = none"}};
}

std::string names_begin(std::uint64_t run) {
    return concat(copy_prefix, hex(run), "-");
}

/// A file of this user's that nobody else may open; nothing otherwise.
std::optional<Descriptor> own_copy(std::filesystem::path const& path) {
    Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    struct stat info {};
    bool const good = file.is_open() && ::fstat(file.get(), &info) == 0 && S_ISREG(info.st_mode) &&
                      info.st_uid == ::geteuid() && (info.st_mode & 0077) == 0;
    return good ? std::optional(std::move(file)) : std::nullopt;
}

std::uint64_t size_of(Descriptor const& file) {
    struct stat info {};
    return ::fstat(file.get(), &info) == 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
}

/// The header of a file that is long enough for what it says.
bool read_header(Descriptor const& file, CopyHeader& header) {
    std::vector<std::byte> bytes(copy_header_bytes);
    auto const size = size_of(file);
    return ::pread(file.get(), bytes.data(), bytes.size(), 0) ==
               static_cast<ssize_t>(bytes.size()) &&
           decode(bytes, header) && header.table_bytes <= size && header.block_bytes <= size &&
           copy_header_bytes + header.content_bytes() <= size;
}

template <class Take>
void each_file(std::filesystem::path const& directory, std::uint64_t run, Take const& take) {
    std::error_code none; // a host without the directory has no copies
    for (auto const& entry : std::filesystem::directory_iterator(directory, none)) {
        if (entry.path().filename().string().starts_with(names_begin(run))) {
            take(entry.path());
        }
    }
}

} // namespace

std::vector<std::byte> encoded(CopyHeader const& header) {
    Raw raw{copy_magic, header, 0};
    raw.hash = hash_of(raw);
    std::vector<std::byte> bytes(copy_header_bytes);
    std::memcpy(bytes.data(), &raw, sizeof raw);
    return bytes;
}

bool decode(std::span<std::byte const> bytes, CopyHeader& header) {
    Raw raw{};
    std::memcpy(&raw, bytes.data(), sizeof raw);
    if (raw.magic != copy_magic || raw.hash != hash_of(raw)) {
        return false;
    }
    header = raw.header;
    return true;
}

MemorySlot::MemorySlot(std::filesystem::path path, std::size_t capacity)
    : path_(std::move(path)),
      file_(
          ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, private_mode)) {
    if (!file_.is_open()) {
        throw no_memory(capacity, errno);
    }
    try {
        require(capacity);
    } catch (...) {
        remove();
        throw;
    }
}

MemorySlot::~MemorySlot() {
    unmap();
}

void MemorySlot::unmap() noexcept {
    if (at_ != nullptr) {
        ::munmap(at_, size_);
        at_ = nullptr;
    }
}

void MemorySlot::require(std::size_t bytes) {
    auto const wanted = copy_header_bytes + bytes;
    if (wanted <= size_) {
        return;
    }
    // Memory that is not there would end the process by a signal when it is touched.
    if (int const code = ::posix_fallocate(file_.get(), 0, static_cast<off_t>(wanted)); code != 0) {
        throw no_memory(bytes, code);
    }
    unmap();
    void* const at =
        ::mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file_.get(), 0);
    if (at == MAP_FAILED) {
        size_ = 0;
        throw no_memory(bytes, errno);
    }
    at_ = static_cast<std::byte*>(at);
    size_ = wanted;
}

void MemorySlot::invalidate() {
    std::memset(at_, 0, sizeof(Raw));
}

std::span<std::byte> MemorySlot::content(std::size_t bytes) const {
    return {at_ + copy_header_bytes, bytes};
}

void MemorySlot::complete(CopyHeader const& header) {
    auto const bytes = encoded(header);
    std::memcpy(at_, bytes.data(), sizeof(Raw));
}

void MemorySlot::remove() const noexcept {
    ::unlink(path_.c_str());
}

std::filesystem::path copy_path(std::filesystem::path const& directory, CopyHeader const& header,
                                int slot) {
    return directory / concat(names_begin(header.run), hex(header.job), "-", hex(header.attempt),
                              "-", header.rank, "-", slot);
}

std::vector<StoredCopy> list_copies(std::filesystem::path const& directory, std::uint64_t run) {
    std::vector<StoredCopy> copies;
    each_file(directory, run, [&](std::filesystem::path const& path) {
        CopyHeader header;
        auto const file = own_copy(path);
        bool const whole = file && read_header(*file, header) && header.run == run &&
                           header.ranks > 0 && header.rank >= 0 && header.rank < header.ranks;
        if (whole) {
            copies.push_back({header, path});
        }
    });
    return copies;
}

void remove_copies(std::filesystem::path const& directory, std::uint64_t run,
                   KeptCopies const& kept) noexcept {
    try {
        auto const attempt = concat("-", hex(kept.attempt), "-");
        each_file(directory, run, [&](std::filesystem::path const& path) {
            CopyHeader header;
            auto const of_step = [&] {
                auto const file = own_copy(path);
                return file && read_header(*file, header) && header.step == kept.step;
            };
            bool const stays = (kept.attempt != 0 &&
                                path.filename().string().find(attempt) != std::string::npos) ||
                               (kept.step >= 0 && of_step());
            struct stat info {};
            bool const ours = ::lstat(path.c_str(), &info) == 0 && info.st_uid == ::geteuid();
            if (!stays && ours) {
                ::unlink(path.c_str());
            }
        });
    } catch (...) { // they stay until the next start
        return;
    }
}

void MappedCopy::Unmap::operator()(std::byte* at) const noexcept {
    ::munmap(at, bytes);
}

MappedCopy::MappedCopy(StoredCopy const& copy, bool verify) : at_(nullptr, Unmap{0}) {
    auto const damaged = [&] {
        return Error(ExitCode::data, {concat("the copy ", copy.path.string(), " is damaged"),
                                      "its contents do not have the hash that its header states",
                                      "Resume from a checkpoint"});
    };
    auto const file = own_copy(copy.path);
    if (!file || !read_header(*file, header_) || header_ != copy.header) {
        throw damaged();
    }
    auto const bytes = copy_header_bytes + header_.content_bytes();
    void* const at = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file->get(), 0);
    if (at == MAP_FAILED) {
        throw no_memory(bytes, errno);
    }
    at_ = {static_cast<std::byte*>(at), Unmap{bytes}};
    auto const content =
        std::span<std::byte const>(at_.get() + copy_header_bytes, header_.content_bytes());
    if (verify && hash64(content) != header_.hash) {
        throw damaged();
    }
}

std::string MappedCopy::table() const {
    return {reinterpret_cast<char const*>(at_.get()) + copy_header_bytes, header_.table_bytes};
}

std::span<std::byte const> MappedCopy::block() const {
    return {at_.get() + copy_header_bytes + header_.table_bytes, header_.block_bytes};
}

} // namespace lockstep::checkpoint
