#pragma once

namespace lockstep::monitor {

/// How long nothing has been heard from a neighbouring host, and whether it is therefore lost. A
/// host whose kernel still answers is neither switched off nor cut off: its ranks are stopped, or
/// the kernel does not let them run. Such a host is lost only after the patience that a stuck rank
/// of this host is given.
///
/// Units  seconds, of an AwakeClock: while this process is stopped, others are not silent
class Hearing {
  public:
    static constexpr double longest_silence_s = 30; ///< of a host that cannot be reached

    void heard(double now) noexcept { heard_ = now; }
    /// The host's kernel has answered.
    void reached(double now) noexcept { reached_ = now; }

    /// Seconds since something was heard; 0 when nothing has ever been heard.
    [[nodiscard]] double silence_s(double now) const noexcept {
        return heard_ < 0 ? 0 : now - heard_;
    }
    [[nodiscard]] bool is_reached(double now) const noexcept;
    /// The silence after which the host is lost.
    [[nodiscard]] double bound_s(double now, double patience_s) const noexcept;
    /// Whether it is time to test if its kernel answers.
    [[nodiscard]] bool is_in_doubt(double now, double patience_s) const noexcept;

  private:
    double heard_ = -1;
    double reached_ = -1;
};

} // namespace lockstep::monitor
