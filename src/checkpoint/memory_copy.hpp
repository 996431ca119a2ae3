#pragma once

#include "base/descriptor.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace lockstep::checkpoint {

// A rank's parts of a run's state, as a file in a host's memory (/dev/shm) that outlives the ranks:
// a header, then the text of a PartsTable, then its block. A copy counts only when its header is
// whole, which is written last, and when the rest has the header's hash.

/// Where hosts keep files in memory.
inline constexpr char const* memory_directory = "/dev/shm";

/// What is known of a copy without its contents.
struct CopyHeader {
    std::uint64_t run = 0;     ///< hash of the identity of the run's checkpoints
    std::uint64_t job = 0;     ///< hash of the job's or the launch's id
    std::uint64_t attempt = 0; ///< hash of the attempt's name
    std::int64_t step = 0;
    std::int32_t rank = 0; ///< whose parts they are
    std::int32_t ranks = 0;
    std::uint64_t table_bytes = 0;
    std::uint64_t block_bytes = 0;
    std::uint64_t hash = 0; ///< XXH3-64 of table and block

    std::size_t content_bytes() const {
        return static_cast<std::size_t>(table_bytes + block_bytes);
    }

    friend bool operator==(CopyHeader const&, CopyHeader const&) = default;
};

/// The header as it lies in the file, and is sent.
inline constexpr std::size_t copy_header_bytes = 4096;
std::vector<std::byte> encoded(CopyHeader const& header);
/// Whether the bytes are a whole header; it is stored then. Shape: bytes [copy_header_bytes]
bool decode(std::span<std::byte const> bytes, CopyHeader& header);

/// The file of one copy after the other; the rank that writes it owns the mapping, the file stays.
class MemorySlot {
  public:
    /// Makes the file, which nobody else has, with memory for contents of `capacity` bytes.
    ///
    /// Throws  Error 69 when the host has too little memory there
    MemorySlot(std::filesystem::path path, std::size_t capacity);
    MemorySlot(MemorySlot const&) = delete;
    MemorySlot& operator=(MemorySlot const&) = delete;
    ~MemorySlot();

    /// Makes room for longer contents; what was there is gone. Throws as the constructor.
    void require(std::size_t bytes);
    /// The first thing to do before contents change: from here on there is no copy.
    void invalidate();
    std::span<std::byte> content(std::size_t bytes) const;
    /// Makes the contents a copy.
    void complete(CopyHeader const& header);
    void remove() const noexcept;

  private:
    void unmap() noexcept;

    std::filesystem::path path_;
    Descriptor file_;
    std::byte* at_ = nullptr;
    std::size_t size_ = 0;
};

/// DIRECTORY/lockstep-state-RUN-JOB-ATTEMPT-RANK-SLOT
std::filesystem::path copy_path(std::filesystem::path const& directory, CopyHeader const& header,
                                int slot);

/// A copy with a whole header, in a file that this user alone may write or read.
struct StoredCopy {
    CopyHeader header;
    std::filesystem::path path;
};
/// This user's copies of a run.
std::vector<StoredCopy> list_copies(std::filesystem::path const& directory, std::uint64_t run);
/// What `remove_copies` leaves of a run's.
struct KeptCopies {
    std::uint64_t attempt = 0; ///< the files of this one, whole or not; 0: of none
    std::int64_t step = -1;    ///< the whole copies of this step; -1: of none
};
/// Removes this user's files of a run, half-written ones too.
void remove_copies(std::filesystem::path const& directory, std::uint64_t run,
                   KeptCopies const& kept = {}) noexcept;

/// A stored copy that is read.
class MappedCopy {
  public:
    /// `verify`: compares the contents with their hash, for which they are read.
    ///
    /// Throws  Error 65 when it is no longer as it was listed, or damaged
    MappedCopy(StoredCopy const& copy, bool verify);

    std::string table() const; ///< as PartsTable::text
    std::span<std::byte const> block() const;

  private:
    struct Unmap {
        std::size_t bytes;
        void operator()(std::byte* at) const noexcept;
    };
    CopyHeader header_;
    std::unique_ptr<std::byte, Unmap> at_;
};

} // namespace lockstep::checkpoint
