#pragma once

#include "base/descriptor.hpp"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::monitor {

/// Why a launcher may not answer its child, for a sentence: the child's parent is stopped, or it
/// may be a daemon elsewhere.
std::string launcher_silence(int parent);

/// What a rank sees of its launcher: the daemon that has started it, its parent, and the sessions
/// (of ssh, say) in which that daemon, or mpirun itself, has started daemons on other hosts.
class LauncherTrace {
  public:
    /// `hosts`: the names and addresses of each host of the job.
    explicit LauncherTrace(std::vector<std::vector<std::string>> const& hosts);

    /// Why the launcher may not answer, for a sentence: its daemon here is stopped, or another one.
    [[nodiscard]] std::string silence() const;
    /// Whether the launcher's daemon that has started this process has ended.
    [[nodiscard]] bool daemon_has_ended() const noexcept;
    /// Whether the launcher has asked this process to end, now or before.
    [[nodiscard]] bool has_asked_to_end() noexcept;
    /// The host, by its place, whose session ended first, as far as the looks could tell: others
    /// end with it soon. To be asked as soon as one of `running_sessions` can be read.
    [[nodiscard]] std::optional<std::size_t> ended_session();
    /// Descriptors that can be read when a session has ended; none once one has.
    [[nodiscard]] std::vector<int> running_sessions() const;

  private:
    struct Session {
        std::size_t host;
        Descriptor process;
    };

    int parent_;
    bool asked_ = false;
    bool one_has_ended_ = false;
    std::optional<std::size_t> first_ended_;
    std::vector<Session> sessions_;
};

} // namespace lockstep::monitor
