#include "staged_exchange.hpp"

#include "train/arena.hpp"

#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <deque>

#include "device_elements.hpp"

namespace lockstep::train {

namespace {

/// Buckets leave the device while backward is under way: each is given to the host's exchange when
/// its copy is there, at the latest in finish. What comes back is not waited for.
class StagedExchange : public comm::Exchange {
  public:
    StagedExchange(std::unique_ptr<comm::Exchange> host, torch::Device device)
        : Exchange(host->partition()), host_(std::move(host)), device_(device),
          streams_(device.type()),
          pinned_(torch::empty({partition_.size()},
                               torch::TensorOptions(torch::kFloat32).pinned_memory(true))) {
        auto const options = torch::TensorOptions(torch::kFloat32).device(device);
        gradients_ = torch::zeros({partition_.size()}, options);
        parameters_ = torch::zeros({partition_.size()}, options);
        host_gradients_ = borrowed(host_->gradients(), partition_.size(), torch::kCPU);
        host_parameters_ = borrowed(host_->parameters(), partition_.size(), torch::kCPU);
    }

    std::string name() const override { return host_->name() + ", staged through host memory"; }
    int rank() const noexcept override { return host_->rank(); }
    bool sums_everywhere() const noexcept override { return host_->sums_everywhere(); }
    float* gradients() noexcept override { return gradients_.mutable_data_ptr<float>(); }
    float* parameters() noexcept override { return parameters_.mutable_data_ptr<float>(); }

    void begin() override {
        leaving_.clear(); // of a step that failed
        host_->begin();
    }
    void ready(int index) override {
        auto const range = partition_.bucket(index);
        leaving_.push_back({index, copied(slice(pinned_, range), slice(gradients_, range))});
        while (!leaving_.empty() && leaving_.front().copied.query()) {
            give_first();
        }
    }
    void finish(std::span<double> step_sums, std::span<std::byte> payload) override {
        while (!leaving_.empty()) {
            leaving_.front().copied.synchronize();
            give_first();
        }
        host_->finish(step_sums, payload);
        for (auto const& range : held()) {
            send_back(gradients_, host_gradients_, range);
        }
        cost_ = host_->cost();
    }
    std::span<double const> squares() const override { return host_->squares(); }
    void publish() override {
        if (sums_everywhere()) {
            return;
        }
        auto const owned = partition_.owned(rank());
        for (auto const& range : owned) {
            copied(slice(pinned_, range), slice(parameters_, range));
        }
        streams_.synchronizeStream(streams_.getStream(device_));
        for (auto const& range : owned) {
            slice(host_parameters_, range).copy_(slice(pinned_, range));
        }
        host_->publish();
        send_back(parameters_, host_parameters_, {0, partition_.size()});
        cost_ = host_->cost();
    }

  private:
    std::vector<comm::Range> held() const {
        return sums_everywhere() ? std::vector<comm::Range>{{0, partition_.size()}}
                                 : partition_.owned(rank());
    }
    /// Between the device and pinned memory, behind the work on the current stream.
    c10::Event copied(torch::Tensor const& into, torch::Tensor const& from) const {
        torch::NoGradGuard const no_grad;
        c10::DeviceGuard const guard(device_);
        into.copy_(from, /*non_blocking=*/true);
        c10::Event event(device_.type());
        event.record(streams_.getStream(device_));
        return event;
    }
    void give_first() {
        auto const index = leaving_.front().index;
        auto const range = partition_.bucket(index);
        slice(host_gradients_, range).copy_(slice(pinned_, range));
        leaving_.pop_front();
        host_->ready(index);
    }
    /// The pinned memory is free: whatever left by it was waited for.
    void send_back(torch::Tensor const& into, torch::Tensor const& from, comm::Range range) const {
        slice(pinned_, range).copy_(slice(from, range));
        copied(slice(into, range), slice(pinned_, range));
    }

    struct Leaving {
        int index = 0;
        c10::Event copied;
    };

    std::unique_ptr<comm::Exchange> host_;
    torch::Device device_;
    c10::impl::VirtualGuardImpl streams_; ///< of the device's kind
    torch::Tensor pinned_;                ///< what is on its way, either way
    std::deque<Leaving> leaving_;
    torch::Tensor gradients_;
    torch::Tensor parameters_;
    torch::Tensor host_gradients_;
    torch::Tensor host_parameters_;
};

} // namespace

std::unique_ptr<comm::Exchange> staged_exchange(std::unique_ptr<comm::Exchange> host,
                                                torch::Device device) {
    return std::make_unique<StagedExchange>(std::move(host), device);
}

} // namespace lockstep::train
