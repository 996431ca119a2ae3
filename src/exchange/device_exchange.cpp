#include "device_exchange.hpp"

#include "arena/arena.hpp"
#include "arena/block_squares.hpp"
#include "arena/layout.hpp"
#include "base/clock.hpp"
#include "base/text.hpp"
#include "comm/collectives.hpp"
#include "comm/device_communicator.hpp"
#include "device/device_elements.hpp"
#include "lockstep/base/error.hpp"
#include "nn/to_device.hpp"

#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <optional>

#include "device_tree.hpp"

namespace lockstep::train {

namespace {

torch::ScalarType type_of(comm::Rounding rounding) {
    return rounding == comm::Rounding::fp16   ? torch::kHalf
           : rounding == comm::Rounding::bf16 ? torch::kBFloat16
                                              : torch::kFloat32;
}

/// Each bucket leaves as soon as it is ready, and is added up, on a stream beside the computing one
/// (DeviceTree). The host waits in finish only, where it needs the norm.
/// Rounded gradients are sent and added in 16 bits.
class DeviceExchange : public comm::Exchange {
  public:
    DeviceExchange(comm::Communicator const& world, comm::CollectiveLibrary const& library,
                   torch::Device device, DeviceExchangeOptions const& options)
        : Exchange(options.partition), world_(world.duplicate()), library_(library),
          device_(device), options_(options), streams_(device.type()),
          sums_(streams_.getStreamFromGlobalPool(device, /*isHighPriority=*/true)) {
        c10::DeviceGuard const guard(device_); // where memory is made
        if (world.size() > 1) {
            devices_.emplace(
                world, library,
                comm::DeviceCommunicatorOptions{.device = device.index(),
                                                .timeout_seconds = options.timeout_seconds});
        }
        auto const form = torch::TensorOptions(torch::kFloat32).device(device);
        auto const sent_form = form.dtype(type_of(options.rounding));
        auto const arrays = two_arrays(form);
        gradients_ = arrays[0];
        parameters_ = arrays[1];
        block_squares_ = torch::zeros({partition_.reduction_blocks()}, form.dtype(torch::kFloat64));
        squares_.resize(static_cast<std::size_t>(partition_.reduction_blocks()));
        sent_ = rounds() ? torch::empty({partition_.size()}, sent_form) : gradients_;
        if (devices_) {
            tree_.emplace(*devices_, partition_, sums_,
                          DeviceTree::Options{.nodes = options.needs.nodes,
                                              .rank = world.rank(),
                                              .route = options.route,
                                              .device = device});
        }
    }

    std::string name() const override {
        return concat(library_.name(), " ", library_.version(),
                      options_.native ? " (in its own summation order)" : "");
    }
    int rank() const noexcept override { return world_.rank(); }
    bool sums_everywhere() const noexcept override { return options_.needs.sums_everywhere; }
    void abandon() noexcept override {
        if (devices_) {
            devices_->abort();
        }
    }
    float* gradients() noexcept override { return gradients_.mutable_data_ptr<float>(); }
    float* parameters() noexcept override { return parameters_.mutable_data_ptr<float>(); }

    void begin_sum(double /*unit*/) override { cost_ = {}; }
    void bucket_ready(int index) override {
        Stopwatch const watch;
        torch::NoGradGuard const no_grad;
        c10::DeviceGuard const guard(device_);
        if (!devices_) {
            // One rank: nothing to send.
        } else if (options_.native) {
            join(sums_, streams_.getStream(device_));
            devices_->all_reduce_sum(device_span_of(slice(gradients_, partition_.bucket(index))),
                                     sums_.native_handle());
            count(partition_.bucket(index));
        } else {
            sum_in_order(index);
        }
        cost_.hidden_s += watch.seconds();
    }

    void finish_sum(std::span<double> step_sums, std::span<std::byte> payload) override {
        Stopwatch watch;
        torch::NoGradGuard const no_grad;
        c10::DeviceGuard const guard(device_);
        if (devices_) {
            comm::sum_with_deadline(world_, step_sums, options_.timeout_seconds);
            cost_.imbalance_s = watch.restart();
            if (options_.native) {
                join(streams_.getStream(device_), sums_);
            } else {
                finish_sums();
                if (sums_everywhere()) {
                    gather(gradients_);
                }
            }
            comm::broadcast_with_deadline(world_, payload, options_.timeout_seconds);
        }
        auto const held = sums_everywhere() || options_.native || !devices_
                              ? std::vector<Range>{{0, partition_.size()}}
                              : partition_.owned(rank());
        block_squares_.zero_();
        for (auto const& range : held) {
            block_squares_.narrow(0, range.first / reduction_block, range.count() / reduction_block)
                .copy_(squares_of_blocks(slice(gradients_, range)));
        }
        auto const on_host = nn::to_host(block_squares_);
        std::copy_n(on_host.const_data_ptr<double>(), squares_.size(), squares_.begin());
        bool const apart = devices_ && !sums_everywhere() && !options_.native;
        if (apart) {
            comm::sum_with_deadline(world_, squares_, options_.timeout_seconds);
        }
        if (devices_) {
            devices_->check_async();
        }
        cost_.exposed_s += watch.seconds();
    }
    std::span<double const> squares() const override { return squares_; }

    void send_parameters() override {
        if (devices_ && !sums_everywhere()) {
            Stopwatch const watch;
            c10::DeviceGuard const guard(device_);
            gather(parameters_);
            cost_.exposed_s += watch.seconds();
        }
    }

  private:
    bool rounds() const { return options_.rounding != comm::Rounding::none; }
    /// Gradients and parameters, [2, size] of zeros: in memory that the library knows where it
    /// offers any.
    torch::Tensor two_arrays(torch::TensorOptions const& form) {
        auto const elements = 2 * partition_.size();
        if (devices_) {
            memory_ = devices_->allocate(static_cast<std::size_t>(elements) * sizeof(float),
                                         options_.native);
        }
        if (memory_.data() == nullptr) {
            return torch::zeros({2, partition_.size()}, form);
        }
        return borrowed(static_cast<float*>(memory_.data()), elements, device_)
            .zero_()
            .view({2, partition_.size()});
    }

    /// Puts later work of `later` behind what is on `earlier` now.
    static void join(c10::Stream later, c10::Stream earlier) {
        c10::Event event(earlier.device_type());
        event.record(earlier);
        event.block(later);
    }
    void count(Range range) {
        cost_.bytes += range.count() * static_cast<std::int64_t>(sent_.element_size());
    }

    void sum_in_order(int bucket) {
        join(sums_, streams_.getStream(device_));
        if (rounds()) {
            c10::StreamGuard const beside(sums_);
            auto const range = partition_.bucket(bucket);
            slice(sent_, range).copy_(slice(gradients_, range));
        }
        cost_.bytes += tree_->sum(bucket, sent_);
    }
    void finish_sums() {
        cost_.bytes += tree_->finish(sent_);
        if (rounds()) {
            c10::StreamGuard const beside(sums_);
            for (auto const& range : partition_.owned(rank())) {
                slice(gradients_, range).copy_(slice(sent_, range));
            }
        }
        join(streams_.getStream(device_), sums_);
    }

    void gather(torch::Tensor const& whole) {
        join(sums_, streams_.getStream(device_));
        tree_->gather(whole);
        join(streams_.getStream(device_), sums_);
        devices_->check_async();
    }

    comm::Communicator world_;
    comm::CollectiveLibrary const& library_;
    torch::Device device_;
    DeviceExchangeOptions options_;
    c10::impl::VirtualGuardImpl streams_; ///< of the device's kind
    c10::Stream sums_;                    ///< on which shards are added while backward runs
    std::optional<comm::DeviceCommunicator> devices_; ///< none: one rank
    std::optional<DeviceTree> tree_;                  ///< ordered sums, and every gather
    comm::DeviceMemory memory_; ///< behind the arrays, where the library has any
    torch::Tensor gradients_;
    torch::Tensor sent_; ///< the gradients, or their copy in 16 bits
    torch::Tensor parameters_;
    torch::Tensor block_squares_;
    std::vector<double> squares_;
};

} // namespace

std::unique_ptr<comm::Exchange> device_exchange(comm::Communicator const& world,
                                                comm::CollectiveLibrary const& library,
                                                torch::Device device,
                                                DeviceExchangeOptions const& options) {
    return std::make_unique<DeviceExchange>(world, library, device, options);
}

} // namespace lockstep::train
