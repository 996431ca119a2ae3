#include "staged_exchange.hpp"

#include "arena/arena.hpp"
#include "device/device_elements.hpp"

#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "device_loans.hpp"
#include "foreign_parts.hpp"
#include "sparse_array.hpp"

namespace lockstep::train {

namespace {

/// Buckets leave the device while backward is under way: each is given to the host's exchange when
/// its copy is there, at the latest in finish. What comes back is not waited for.
///
/// Where gradients are sharded, a bucket loses its memory on the device when its copy is there, but
/// for the rank's own shard, into which its sum comes back.
class StagedExchange : public comm::Exchange {
  public:
    StagedExchange(std::unique_ptr<comm::Exchange> host, torch::Device device, StagedShards shards)
        : Exchange(host->partition()), host_(std::move(host)), device_(device),
          streams_(device.type()) {
        auto const form = torch::TensorOptions(torch::kFloat32).pinned_memory(true);
        for (int bucket = 0; bucket < partition_.buckets(); ++bucket) {
            pinned_.push_back(torch::empty({partition_.bucket(bucket).count()}, form));
        }
        auto const options = torch::TensorOptions(torch::kFloat32).device(device);
        if (shards.gradients) {
            sparse_gradients_.emplace(device, partition_.size());
            prepared_.assign(static_cast<std::size_t>(partition_.buckets()), 0);
            for (auto const& own : partition_.owned(rank())) {
                sparse_gradients_->populate(own);
                slice(sparse_gradients_->values(), own).zero_();
            }
        }
        if (shards.parameters) {
            loans_.emplace(*host_, device);
        }
        gradients_ = sparse_gradients_ ? sparse_gradients_->values()
                                       : torch::zeros({partition_.size()}, options);
        parameters_ = loans_ ? loans_->parameters() : torch::zeros({partition_.size()}, options);
        host_gradients_ = borrowed(host_->gradients(), partition_.size(), torch::kCPU);
        host_parameters_ = borrowed(host_->parameters(), partition_.size(), torch::kCPU);
    }

    std::string name() const override { return host_->name() + ", staged through host memory"; }
    int rank() const noexcept override { return host_->rank(); }
    bool sums_everywhere() const noexcept override { return host_->sums_everywhere(); }
    void abandon() noexcept override { host_->abandon(); }
    float* gradients() noexcept override { return gradients_.mutable_data_ptr<float>(); }
    float* parameters() noexcept override { return parameters_.mutable_data_ptr<float>(); }

    void begin_sum(double unit) override {
        forget_loans();     // of an evaluation, or of who needed all
        forget_gradients(); // of a step that failed
        given_ = 0;
        summing_.emplace(host_->begin(unit));
    }
    /// Memory for a few buckets is enough while backward does not run far ahead of the copies.
    void prepare_gradients(int index) override {
        if (!sparse_gradients_ ||
            std::exchange(prepared_[static_cast<std::size_t>(index)], 1) != 0) {
            return;
        }
        if (loans_) {
            loans_->require();
        }
        while (!leaving_.empty() && given_ < index + 1 - comm::gradient_buckets_ahead) {
            give_first();
        }
        for (auto const& range : foreign_parts(partition_, index, rank())) {
            sparse_gradients_->populate(range);
            slice(gradients_, range).zero_(); // also what lies between entries
        }
    }
    void bucket_ready(int index) override {
        auto const at = static_cast<std::size_t>(index);
        leaving_.push_back(
            {index, copied(pinned_[at], slice(gradients_, partition_.bucket(index)))});
        while (!leaving_.empty() && leaving_.front().copied.query()) {
            give_first();
        }
    }
    void finish_sum(std::span<double> step_sums, std::span<std::byte> payload) override {
        while (!leaving_.empty()) {
            give_first();
        }
        forget_loans();
        squares_ = std::move(*summing_).finish(step_sums, payload);
        send_back(gradients_, host_gradients_, held());
        cost_ = host_->cost();
    }
    std::span<double const> squares() const override { return squares_; }
    void send_parameters() override {
        if (sums_everywhere()) {
            host_->publish();
            cost_ = host_->cost();
            return;
        }
        forget_loans();
        auto const owned = partition_.owned(rank());
        for_each_part(owned, [&](torch::Tensor const& pinned, Range range) {
            copied(pinned, slice(parameters_, range));
        });
        streams_.synchronizeStream(streams_.getStream(device_));
        for_each_part(owned, [&](torch::Tensor const& pinned, Range range) {
            slice(host_parameters_, range).copy_(pinned);
        });
        host_->publish();
        if (!loans_) {
            send_back(parameters_, host_parameters_, {{0, partition_.size()}});
        }
        cost_ = host_->cost();
    }

    bool lends() const noexcept override { return loans_.has_value(); }
    bool is_whole() const noexcept override { return !loans_ || has_all_; }
    void lend(int index) override { loans_->lend(index); }
    void ask_for(int index) override { loans_->ask(index); }
    void give_back(int index) override { loans_->give_back(index); }
    void serve() override { host_->serve(); }
    void meet() override {
        has_all_ = false;
        host_->meet();
    }

  private:
    void finish_publishing() override {
        for (int index = 0; index < partition_.buckets(); ++index) {
            loans_->lend(index);
        }
        host_->meet();
        has_all_ = true;
    }
    void forget_gradients() {
        leaving_.clear();
        for (int index = 0; index < std::ssize(prepared_); ++index) {
            if (prepared_[static_cast<std::size_t>(index)] != 0) {
                streams_.synchronizeStream(streams_.getStream(device_));
                discard(index);
            }
        }
    }
    void discard(int index) {
        prepared_[static_cast<std::size_t>(index)] = 0;
        for (auto const& range : foreign_parts(partition_, index, rank())) {
            sparse_gradients_->discard(range);
        }
    }
    void forget_loans() {
        if (loans_) {
            loans_->forget();
            has_all_ = false;
        }
    }
    std::vector<Range> held() const {
        return sums_everywhere() ? std::vector<Range>{{0, partition_.size()}}
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
        if (!leaving_.front().copied.query()) {
            leaving_.front().copied.synchronize();
        }
        host_->prepare_gradients(index);
        slice(host_gradients_, partition_.bucket(index))
            .copy_(pinned_[static_cast<std::size_t>(index)]);
        leaving_.pop_front();
        ++given_;
        if (sparse_gradients_) {
            discard(index);
        }
        summing_->ready(index);
    }
    /// The pinned memory is free: whatever left by it was waited for.
    void send_back(torch::Tensor const& into, torch::Tensor const& from,
                   std::vector<Range> const& ranges) const {
        for_each_part(ranges, [&](torch::Tensor const& pinned, Range range) {
            pinned.copy_(slice(from, range));
            copied(slice(into, range), pinned);
        });
    }
    /// Calls action(pinned memory, range) for what each bucket has of the ranges.
    template <class Action>
    void for_each_part(std::vector<Range> const& ranges, Action const& action) const {
        for (int index = 0; index < partition_.buckets(); ++index) {
            auto const bucket = partition_.bucket(index);
            for (auto const& each : ranges) {
                Range const part{std::max(bucket.first, each.first),
                                 std::min(bucket.last, each.last)};
                if (part.first < part.last) {
                    action(slice(pinned_[static_cast<std::size_t>(index)],
                                 {part.first - bucket.first, part.last - bucket.first}),
                           part);
                }
            }
        }
    }

    struct Leaving {
        int index = 0;
        c10::Event copied;
    };

    std::unique_ptr<comm::Exchange> host_;
    std::optional<comm::GradientSum> summing_; ///< on the host; none: before the first step
    std::span<double const> squares_;          ///< the host's
    torch::Device device_;
    c10::impl::VirtualGuardImpl streams_; ///< of the device's kind
    std::vector<torch::Tensor> pinned_;   ///< by bucket: what is on its way, either way
    std::deque<Leaving> leaving_;
    int given_ = 0;                               ///< buckets, to the host's exchange
    std::optional<SparseArray> sparse_gradients_; ///< none: all gradients have memory
    std::vector<char> prepared_;                  ///< by bucket: its gradients have memory
    std::optional<DeviceLoans> loans_;            ///< none: all parameters have memory
    bool has_all_ = false;                        ///< on loan
    torch::Tensor gradients_;
    torch::Tensor parameters_;
    torch::Tensor host_gradients_;
    torch::Tensor host_parameters_;
};

} // namespace

std::unique_ptr<comm::Exchange> staged_exchange(std::unique_ptr<comm::Exchange> host,
                                                torch::Device device, StagedShards shards) {
    return std::make_unique<StagedExchange>(std::move(host), device, shards);
}

} // namespace lockstep::train
