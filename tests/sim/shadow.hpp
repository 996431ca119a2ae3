#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "clock.hpp"

namespace lockstep::sim {

/// A use of memory by the kernel that is the `epoch`-th work of a stream.
struct Access {
    std::size_t stream = 0;
    std::uint64_t epoch = 0; ///< 0: none
    char const* kernel = "";
    bool writes = false;
};

/// Who used which bytes of a block last: finds two uses of which one writes, with nothing that
/// orders one behind the other, when the later one is launched, whenever the two run.
class Shadow {
  public:
    struct Conflict {
        Access earlier;
        std::size_t first = 0, last = 0; ///< bytes
    };

    explicit Shadow(std::size_t bytes);

    /// Notes the use of bytes [first, last). `before` is what happened before it.
    std::optional<Conflict> touch(std::size_t first, std::size_t last, Access const& access,
                                  Clock const& before);

  private:
    struct Segment {
        std::size_t last = 0;
        Access write;
        std::vector<Access> reads; ///< since the write, one for each stream
    };

    void split(std::size_t at);

    std::map<std::size_t, Segment> segments_; ///< by their first bytes
};

} // namespace lockstep::sim
