// Recorded work of a Machine.

#include <algorithm>
#include <stdexcept>

#include "machine.hpp"

namespace lockstep::sim {

Recording* Machine::recording_of(Stream const& stream) {
    auto const found = std::find_if(recordings_.begin(), recordings_.end(),
                                    [&](auto const& each) { return each.stream == &stream; });
    return found == recordings_.end() ? nullptr : &*found;
}

void Machine::refuse(Stream const& on, std::string const& what) {
    if (auto* const recording = recording_of(on)) {
        recording->refused = "sim: cannot be recorded: " + what;
        throw std::logic_error(recording->refused);
    }
}

void Machine::refuse_in_recording(Stream const& on, char const* what) {
    std::lock_guard const lock(mutex_);
    refuse(on, what);
}

std::shared_ptr<GraphMemory> Machine::new_graph_memory() {
    std::lock_guard const lock(mutex_);
    return {new GraphMemory{++graph_memories_}, [this](GraphMemory* memory) {
                end_graph_memory(memory->number);
                delete memory;
            }};
}

void Machine::begin_recording(Stream& on, std::shared_ptr<GraphMemory> memory) {
    std::lock_guard const lock(mutex_);
    if (on.id() == 0) {
        throw std::logic_error("sim: a device's default stream cannot be recorded");
    }
    refuse(on, "the beginning of a recording");
    auto graph = std::make_shared<Graph>();
    graph->memory = std::move(memory);
    recordings_.push_back({&on, std::move(graph), {}});
}

std::shared_ptr<Graph> Machine::end_recording(Stream& on) {
    std::lock_guard const lock(mutex_);
    auto* const recording = recording_of(on);
    if (recording == nullptr || !recording->refused.empty()) {
        throw std::logic_error(recording == nullptr ? "sim: nothing is recorded"
                                                    : recording->refused);
    }
    auto graph = std::move(recording->graph);
    recordings_.erase(recordings_.begin() + (recording - recordings_.data()));
    if (graph->launches.empty()) {
        throw std::logic_error("sim: the graph is empty");
    }
    return graph;
}

void Machine::abandon_recording(Stream& on) noexcept {
    std::shared_ptr<Graph> graph; // its memory ends without the lock
    std::lock_guard const lock(mutex_);
    if (auto* const recording = recording_of(on)) {
        graph = std::move(recording->graph);
        recordings_.erase(recordings_.begin() + (recording - recordings_.data()));
    }
}

void Machine::replay(Graph const& graph, Stream& on) {
    std::lock_guard const lock(mutex_);
    refuse(on, "a replay");
    if (!options_.kernels) {
        return;
    }
    for (auto const& launch : graph.launches) {
        ++counts_->launches;
        enqueue(on, launch.kernel, launch.ranges, launch.work, launch.is_kernel);
    }
}

/// Its blocks are as others from now on.
void Machine::end_graph_memory(int number) {
    std::lock_guard const lock(mutex_);
    for (auto* const block : blocks_.end_graph_memory(number)) {
        give_back(*block);
    }
}

} // namespace lockstep::sim
