#include "base/clock.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <ctime>

namespace lockstep {

std::string utc_now() {
    auto const now = std::chrono::system_clock::now();
    auto const since_epoch = now.time_since_epoch();
    auto const millis =
        std::chrono::duration_cast<std::chrono::milliseconds>(since_epoch).count() % 1000;
    std::time_t const seconds = std::chrono::system_clock::to_time_t(now);
    std::tm parts{};
    gmtime_r(&seconds, &parts);
    std::array<char, 32> date{};
    static_cast<void>(std::strftime(date.data(), date.size(), "%Y-%m-%dT%H:%M:%S", &parts));
    return concat(date.data(), ".", zero_padded(millis, 3), "Z");
}

std::string utc_for_names() {
    auto stamp = utc_now();
    std::replace(stamp.begin(), stamp.end(), ':', '-');
    return stamp;
}

} // namespace lockstep
