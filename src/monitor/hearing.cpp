#include "monitor/hearing.hpp"

#include <algorithm>

namespace lockstep::monitor {

namespace {

constexpr double reached_for_s = 5; ///< an answer tells of so long

} // namespace

bool Hearing::is_reached(double now) const noexcept {
    return reached_ >= 0 && now - reached_ < reached_for_s;
}

double Hearing::bound_s(double now, double patience_s) const noexcept {
    return is_reached(now) ? patience_s : std::min(patience_s, longest_silence_s);
}

bool Hearing::is_in_doubt(double now, double patience_s) const noexcept {
    return silence_s(now) > std::min(patience_s, longest_silence_s) / 4;
}

} // namespace lockstep::monitor
