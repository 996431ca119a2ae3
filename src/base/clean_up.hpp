#pragma once

#include <filesystem>
#include <functional>

namespace lockstep {

/// Undoes what must not be left behind, such as a temporary directory or a child, if SIGTERM,
/// SIGINT or SIGHUP ends the process while this object exists. Of several, the latest comes first;
/// then the process ends by that signal. A second signal ends it at once, except SIGTERM, which
/// launchers send more than once. A signal that is ignored or handled otherwise (SignalRequests)
/// stays so.
class CleanUp {
  public:
    /// `undo` is called by another thread, and must let out no exception.
    explicit CleanUp(std::function<void()> undo);
    CleanUp(CleanUp const&) = delete;
    CleanUp& operator=(CleanUp const&) = delete;
    /// Does not return while a signal ends the process: whatever then fails here is not told.
    ~CleanUp();

    /// Whether such a signal has come: the process ends soon.
    [[nodiscard]] static bool is_under_way() noexcept;

  private:
    std::function<void()> undo_;
};

/// Removes a directory and all in it, also where processes that are being killed still write to it;
/// what cannot be removed stays.
void remove_tree(std::filesystem::path const& path) noexcept;

} // namespace lockstep
