#pragma once

#include "lockstep/base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace lockstep {

/// An open file, read and written by position; closed when it goes. Move-only.
/// Every member throws `Error` that names the path.
class File {
  public:
    static File open_read(std::filesystem::path const& path);
    static File open_write(std::filesystem::path const& path); ///< an existing file, no link
    static File create(std::filesystem::path const& path);     ///< new or emptied, no link
    /// New: whatever has the name, such as a link that others have put there, is removed first.
    static File create_new(std::filesystem::path const& path);
    static File append(std::filesystem::path const& path); ///< made where it is missing; no link

    File(File&& other) noexcept;
    File& operator=(File&& other) noexcept;
    ~File();

    std::filesystem::path const& path() const noexcept { return path_; }
    std::uint64_t size() const;

    /// Fills `into` from `offset`; a file that ends earlier is an error (65).
    void read_at(std::uint64_t offset, std::span<std::byte> into) const;
    void write_at(std::uint64_t offset, std::span<std::byte const> from) const;
    void append_text(std::string const& text) const; ///< one write call, so lines stay whole
    /// Allocates blocks for the first `bytes` of the file, so that later writes cannot meet a full
    /// disk; a full disk is an error (74) at once.
    void claim_space(std::uint64_t bytes) const;
    void sync() const; ///< fsync

  private:
    File(std::filesystem::path path, int flags);
    std::filesystem::path path_;
    int descriptor_ = -1;
};

/// The whole file as text.
std::string read_text(std::filesystem::path const& path);

/// Replaces a file durably: a temporary name, fsync, rename, fsync of the directory.
void write_text_durably(std::filesystem::path const& path, std::string const& text);

/// Renames and makes the new name durable (fsync of the directory).
void rename_durably(std::filesystem::path const& from, std::filesystem::path const& to);

/// Makes the directory and those above it, durably; one that cannot be made is an error (73).
void make_directories(std::filesystem::path const& path);
/// Throws 73 where the directory could not be made because there, or above it, is a file.
void require_no_file_on(std::filesystem::path const& path);

/// Makes a file there and removes it; throws like `creation_error` where that cannot be.
void require_writable(std::filesystem::path const& directory);

/// Why nothing can be made in a directory, by errno: a disk that is full, out of inodes or
/// broken is 74, all else 73.
Error creation_error(std::string const& what, std::filesystem::path const& directory,
                     int error_number);

/// Bytes free for us on the file system that holds `path`.
std::uint64_t free_space(std::filesystem::path const& path);

} // namespace lockstep
