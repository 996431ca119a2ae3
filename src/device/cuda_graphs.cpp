#include "device/device_graph.hpp"

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAGraph.h>

#include <utility>

namespace lockstep::train {

namespace {

class CudaGraph : public DeviceGraph {
  public:
    void replay() override { graph.replay(); }

    at::cuda::CUDAGraph graph;
};

class CudaGraphRecorder : public GraphRecorder {
  public:
    explicit CudaGraphRecorder(c10::DeviceIndex device)
        : device_(device), pool_(at::cuda::graph_pool_handle()) {}

    void begin() override {
        recorded_ = std::make_unique<CudaGraph>();
        // Other threads copy batches and write checkpoints meanwhile, which is no concern of ours.
        recorded_->graph.capture_begin(pool_, cudaStreamCaptureModeThreadLocal);
    }

    std::unique_ptr<DeviceGraph> end() override {
        recorded_->graph.capture_end();
        return std::move(recorded_);
    }

    /// After an operation that cannot be recorded the end fails, too: but it ends the stream's
    /// recording, and leaves the allocator's to us.
    void abandon() noexcept override {
        if (!recorded_) {
            return;
        }
        try {
            recorded_->graph.capture_end();
        } catch (...) {
            end_allocations();
        }
        recorded_.reset();
        static_cast<void>(cudaGetLastError()); // or the next call would report it
    }

  private:
    /// Where the end of a recording fails, the graph neither ends them nor gives the memory back,
    /// and the allocators keep asking it which streams it records.
    void end_allocations() const noexcept {
        try {
            c10::cuda::CUDACachingAllocator::endAllocateToPool(device_, pool_);
            c10::cuda::CUDACachingAllocator::releasePool(device_, pool_);
        } catch (...) { // they had ended
        }
        try {
            end_pinned(*at::getHostAllocator(at::kCUDA));
        } catch (...) { // the same
        }
    }
    /// Earlier versions of LibTorch have no pools of pinned memory.
    template <class Allocator>
    void end_pinned(Allocator& allocator) const {
        if constexpr (requires { allocator.end_allocate_to_pool(pool_); }) {
            allocator.end_allocate_to_pool(pool_);
            allocator.release_pool(pool_);
        }
    }

    c10::DeviceIndex device_;
    at::cuda::MempoolId_t pool_;
    std::unique_ptr<CudaGraph> recorded_;
};

} // namespace

std::unique_ptr<GraphRecorder> make_graph_recorder(torch::Device device) {
    return device.is_cuda() ? std::make_unique<CudaGraphRecorder>(device.index()) : nullptr;
}

} // namespace lockstep::train
