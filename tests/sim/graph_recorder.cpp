// Graphs of the simulated devices, in place of the part of the program that says that it has none.

#include "device/device_graph.hpp"

#include "torch_sim.hpp"

namespace lockstep::train {

namespace {

class SimGraph : public DeviceGraph {
  public:
    explicit SimGraph(std::shared_ptr<sim::Graph> graph) : graph_(std::move(graph)) {}
    void replay() override { sim::replay(*graph_, sim::current_stream(sim::current_device())); }

  private:
    std::shared_ptr<sim::Graph> graph_;
};

class SimGraphRecorder : public GraphRecorder {
  public:
    void begin() override {
        on_ = &sim::current_stream(sim::current_device());
        sim::begin_recording(*on_, memory_);
    }
    std::unique_ptr<DeviceGraph> end() override {
        return std::make_unique<SimGraph>(sim::end_recording(*on_));
    }
    void abandon() noexcept override {
        if (on_ != nullptr) {
            sim::abandon_recording(*on_);
        }
    }

  private:
    std::shared_ptr<sim::GraphMemory> memory_ = sim::new_graph_memory();
    sim::Stream* on_ = nullptr;
};

} // namespace

std::unique_ptr<GraphRecorder> make_graph_recorder(torch::Device device) {
    return device.type() == sim::device_type ? std::make_unique<SimGraphRecorder>() : nullptr;
}

} // namespace lockstep::train
