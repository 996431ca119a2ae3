#pragma once

#include <filesystem>
#include <utility>

namespace lockstep {

/// Throws Error 73 when something that is neither a file nor a link has this name: a directory or a
/// device, which a rename would replace.
void require_replaceable(std::filesystem::path const& name);

/// The temporary name of an incomplete file, which is removed with this object unless it has been
/// renamed by then. Declare any object that has the file open after this one.
class PartialFile {
  public:
    explicit PartialFile(std::filesystem::path path) : path_(std::move(path)) {}
    PartialFile(PartialFile const&) = delete;
    PartialFile& operator=(PartialFile const&) = delete;
    ~PartialFile();

    std::filesystem::path const& path() const noexcept { return path_; }

    /// Gives the file its final name, durably. Throws as `require_replaceable` and
    /// `rename_durably`.
    void rename(std::filesystem::path const& name);

  private:
    std::filesystem::path path_;
    bool renamed_ = false;
};

} // namespace lockstep
