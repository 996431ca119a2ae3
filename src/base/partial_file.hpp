#pragma once

#include "base/clean_up.hpp"

#include <atomic>
#include <filesystem>
#include <string>

namespace lockstep {

/// Throws Error 73 when something that is neither a file nor a link has this name: a directory or a
/// device, which a rename would replace.
void require_replaceable(std::filesystem::path const& name);

/// HOST-PROCESS-RANDOM: no process has drawn it before. Containers on one file system may have
/// equal numbers of processes, and even equal names of hosts.
std::string new_token();

/// HOST in the tokens of this host.
std::string token_host();

/// FILE.partial-TOKEN, the name of an incomplete file until it is whole. A start of the run removes
/// what a killed process has left under such a name.
std::filesystem::path partial_path(std::filesystem::path const& file,
                                   std::string const& token = new_token());

/// The temporary name of an incomplete file, which is removed with this object unless it has been
/// renamed by then, and if a signal ends this process (CleanUp). Declare any object that has the
/// file open after this one.
class PartialFile {
  public:
    explicit PartialFile(std::filesystem::path path);
    PartialFile(PartialFile const&) = delete;
    PartialFile& operator=(PartialFile const&) = delete;
    ~PartialFile();

    std::filesystem::path const& path() const noexcept { return path_; }

    /// Gives the file its final name, durably. Throws as `require_replaceable` and
    /// `rename_durably`.
    void rename(std::filesystem::path const& name);
    /// The same for what may be lost with the host's power.
    void rename_unsynced(std::filesystem::path const& name);

  private:
    void remove_unless_renamed() const noexcept;

    std::filesystem::path path_;
    std::atomic<bool> renamed_ = false;
    CleanUp removal_;
};

} // namespace lockstep
