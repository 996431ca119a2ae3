#include "comm/native_exchange.hpp"

#include "base/clock.hpp"
#include "base/recorder.hpp"
#include "comm/shared_block.hpp"
#include "comm/tree_sum.hpp"

#include <algorithm>

#include "pending.hpp"

namespace lockstep::comm {

namespace {

class NativeExchange : public Exchange {
  public:
    NativeExchange(Communicator const& world, NativeExchangeOptions const& options)
        : Exchange(options.partition), world_(world.duplicate()),
          sums_everywhere_(options.sums_everywhere), timeout_(options.timeout_seconds),
          alone_(Communicator::self()),
          memory_(std::make_shared<SharedBlock>(
              alone_, 2 * static_cast<std::size_t>(partition_.size()) * sizeof(float))),
          squares_(static_cast<std::size_t>(partition_.reduction_blocks())),
          ready_at_ns_(static_cast<std::size_t>(partition_.buckets())), pending_(memory_) {}

    std::string name() const override { return "MPI_Iallreduce"; }
    int rank() const noexcept override { return world_.rank(); }
    bool sums_everywhere() const noexcept override { return sums_everywhere_; }
    float* gradients() noexcept override { return reinterpret_cast<float*>(memory_->data()); }
    float* parameters() noexcept override { return gradients() + partition_.size(); }

    void begin_sum(double /*unit*/) override { cost_ = {}; }
    void bucket_ready(int index) override {
        Stopwatch const watch;
        ready_at_ns_[static_cast<std::size_t>(index)] = recorder_now_ns();
        auto const range = partition_.bucket(index);
        pending_.sum(world_,
                     std::span(gradients() + range.first, static_cast<std::size_t>(range.count())));
        cost_.bytes += range.count() * static_cast<std::int64_t>(sizeof(float));
        static_cast<void>(pending_.done()); // messages move only while MPI is called
        cost_.hidden_s += watch.seconds();
    }
    void finish_sum(std::span<double> step_sums, std::span<std::byte> payload) override {
        Stopwatch watch;
        barrier_with_deadline(world_, timeout_);
        cost_.imbalance_s = watch.restart();
        pending_.wait(timeout_);
        for (int bucket = 0; bucket < partition_.buckets(); ++bucket) { // done by now, or before
            record_scope("all-reduce of a bucket",
                         {.begin_ns = ready_at_ns_[static_cast<std::size_t>(bucket)],
                          .end_ns = recorder_now_ns(),
                          .number = bucket,
                          .kind = ScopeKind::travelling,
                          .name = {}});
        }
        sum_with_deadline(world_, step_sums, timeout_);
        broadcast_with_deadline(world_, payload, timeout_);
        for (std::size_t at = 0; at < squares_.size(); ++at) {
            squares_[at] =
                block_squares(gradients() + static_cast<std::int64_t>(at) * reduction_block);
        }
        cost_.exposed_s += watch.seconds();
    }
    std::span<double const> squares() const override { return squares_; }
    void send_parameters() override {
        if (sums_everywhere_) {
            return;
        }
        Stopwatch const watch;
        for (int bucket = 0; bucket < partition_.buckets(); ++bucket) {
            auto const whole = partition_.bucket(bucket);
            std::vector<std::int64_t> bounds{0};
            for (int rank = 0; rank < partition_.ranks(); ++rank) {
                bounds.push_back(partition_.shard(bucket, rank).last - whole.first);
            }
            pending_.gather(world_, parameters() + whole.first, bounds);
        }
        pending_.wait(timeout_);
        cost_.exposed_s += watch.seconds();
    }

  private:
    Communicator world_;
    bool sums_everywhere_;
    double timeout_;
    Communicator alone_;
    std::shared_ptr<SharedBlock> memory_;
    std::vector<double> squares_;
    std::vector<std::int64_t> ready_at_ns_; ///< by bucket, of the recorder's clock
    Pending pending_;
};

} // namespace

std::unique_ptr<Exchange> make_native_exchange(Communicator const& world,
                                               NativeExchangeOptions const& options) {
    return std::make_unique<NativeExchange>(world, options);
}

} // namespace lockstep::comm
