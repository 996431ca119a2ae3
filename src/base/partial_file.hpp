#pragma once

#include <filesystem>
#include <utility>

namespace lockstep {

/// The temporary name of a file that is not complete: removed with this object, unless the file has
/// got its own name by then. Whoever has the file open is declared after it.
class PartialFile {
  public:
    explicit PartialFile(std::filesystem::path path) : path_(std::move(path)) {}
    PartialFile(PartialFile const&) = delete;
    PartialFile& operator=(PartialFile const&) = delete;
    ~PartialFile();

    std::filesystem::path const& path() const noexcept { return path_; }

    /// Gives the file its name, durably. Throws as `rename_durably`.
    void rename(std::filesystem::path const& name);

  private:
    std::filesystem::path path_;
    bool renamed_ = false;
};

} // namespace lockstep
