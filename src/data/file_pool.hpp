#pragma once

#include "lockstep/base/file.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace lockstep::data {

/// Files that threads read by position: opened when they are needed, and those used last kept open,
/// since systems limit how many a process may have.
class FilePool {
  public:
    explicit FilePool(std::size_t most_open = 256) : most_open_(most_open) {}

    /// Takes a file in as it is now. Throws Error 66.
    std::size_t add(std::filesystem::path const& path);

    /// Open for as long as the caller holds it.
    ///
    /// Throws  Error 65 when the file is not the one that was taken in, by size or time of change
    std::shared_ptr<File const> get(std::size_t number) const;

    std::filesystem::path path(std::size_t number) const { return files_[number].path; }
    std::size_t size() const noexcept { return files_.size(); }

  private:
    struct Entry {
        std::string path; ///< there may be many, and a path holds each of its parts once more
        std::uint64_t bytes = 0;
        std::filesystem::file_time_type changed;
        mutable std::shared_ptr<File const> open;
        mutable std::uint64_t used = 0;
    };

    void close_oldest() const;

    std::size_t most_open_;
    std::vector<Entry> files_;
    mutable std::mutex mutex_;
    mutable std::uint64_t clock_ = 0;
    mutable std::size_t open_ = 0;
};

} // namespace lockstep::data
