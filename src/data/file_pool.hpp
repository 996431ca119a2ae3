#pragma once

#include "base/file.hpp"
#include "base/packing.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace lockstep::data {

/// Files that threads read by position: opened when they are needed, and those used last kept open,
/// since systems limit how many a process may have.
class FilePool {
  public:
    explicit FilePool(std::size_t max_open = 256) : max_open_(max_open) {}

    /// A file as it was when a run began.
    struct Stamp {
        std::string path; ///< there may be many, and a path holds each of its parts once more
        std::uint64_t bytes = 0;
        std::filesystem::file_time_type changed;

        void pack(Packer& packer) const;
        static Stamp unpacked(Unpacker& packed);
    };

    /// Takes a file in as it is now. Throws Error 66.
    std::size_t add(std::filesystem::path const& path) { return add(stamp_now(path)); }
    /// Takes a file in as it was.
    std::size_t add(Stamp stamp);
    /// Of the file that was added last, or of one that its links lead to, which is taken in once.
    std::size_t number_of(std::filesystem::path const& path);
    std::size_t number_of(Stamp stamp);
    std::size_t last_added() const noexcept { return last_added_; }
    /// From now on a file is read from a copy of it.
    ///
    /// Throws  Error 65 when the file was changed since it was taken in
    void read_from_copy(std::size_t number, std::filesystem::path const& copy);

    /// Open for as long as the caller holds it.
    ///
    /// Throws  Error 65 when the file is not the one that was taken in, by size or time of change
    std::shared_ptr<File const> get(std::size_t number) const;

    /// Its size and time of change, as they were when it was taken in.
    Stamp const& stamp(std::size_t number) const { return files_[number].stamp; }
    std::string stamp_text(std::size_t number) const;
    std::filesystem::path path(std::size_t number) const { return files_[number].stamp.path; }
    std::size_t size() const noexcept { return files_.size(); }

  private:
    struct Entry {
        Stamp stamp;
        mutable std::shared_ptr<File const> open{};
        mutable std::uint64_t used = 0;
    };

    static Stamp stamp_now(std::filesystem::path const& path);
    static void require_same(Stamp const& stamp);
    void close_oldest() const;

    std::size_t max_open_;
    std::vector<Entry> files_;
    std::size_t last_added_ = 0;
    std::map<std::string, std::size_t> linked_;
    mutable std::mutex mutex_;
    mutable std::uint64_t clock_ = 0;
    mutable std::size_t open_ = 0;
};

} // namespace lockstep::data
