#pragma once

#include <filesystem>
#include <utility>

namespace lockstep {

/// The temporary name of an incomplete file, which is removed with this object unless it has been
/// renamed by then. Declare any object that has the file open after this one.
class PartialFile {
  public:
    explicit PartialFile(std::filesystem::path path) : path_(std::move(path)) {}
    PartialFile(PartialFile const&) = delete;
    PartialFile& operator=(PartialFile const&) = delete;
    ~PartialFile();

    std::filesystem::path const& path() const noexcept { return path_; }

    /// Gives the file its final name, durably. Throws as `rename_durably`.
    void rename(std::filesystem::path const& name);

  private:
    std::filesystem::path path_;
    bool renamed_ = false;
};

} // namespace lockstep
