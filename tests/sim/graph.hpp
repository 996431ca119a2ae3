#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime.hpp"

namespace lockstep::sim {

struct GraphMemory {
    int number = 0; ///< of the blocks that belong to it
};

/// Work as it was launched, in order.
struct Graph {
    struct Launch {
        char const* kernel = "";
        std::vector<Range> ranges;
        std::function<void()> work;
        bool is_kernel = true;
    };

    std::vector<Launch> launches;
    std::shared_ptr<GraphMemory> memory;
};

/// A stream that records.
struct Recording {
    Stream const* stream = nullptr;
    std::shared_ptr<Graph> graph;
    std::string refused; ///< the first thing that cannot be recorded
};

} // namespace lockstep::sim
