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

/// Files that threads read by position: opened when they are needed; the most recently used ones
/// stay open, since systems limit how many a process may have open.
class FilePool {
  public:
    explicit FilePool(std::size_t max_open = 256) : max_open_(max_open) {}

    /// A file as it was when a run began.
    struct Stamp {
        std::string path; ///< a string, since there may be many, and a path stores each of its
                          ///< parts once more
        std::uint64_t bytes = 0;
        std::filesystem::file_time_type changed;

        void pack(Packer& packer) const;
        static Stamp unpacked(Unpacker& packed);
    };

    /// Adds a file in its present state. Throws Error 66.
    std::size_t add(std::filesystem::path const& path) { return add(stamp_now(path)); }
    /// Adds a file in the state of `stamp`.
    std::size_t add(Stamp stamp);
    /// The number of the file that was added last, or of one that its links lead to, which is added
    /// once.
    std::size_t number_of(std::filesystem::path const& path);
    std::size_t number_of(Stamp stamp);
    std::size_t last_added() const noexcept { return last_added_; }
    /// Reads a file from a copy of it from now on.
    ///
    /// Throws  Error 65 when the file has changed since it was added
    void read_from_copy(std::size_t number, std::filesystem::path const& copy);

    /// The file, which stays open for as long as the caller holds it.
    ///
    /// Throws  Error 65 when the file is not the one that was added, judged by size and time of
    ///         change
    std::shared_ptr<File const> get(std::size_t number) const;

    /// The file's size and time of change when it was added.
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
