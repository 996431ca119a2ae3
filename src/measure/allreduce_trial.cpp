#include "measure/allreduce_trial.hpp"

#include "base/clock.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/make_tree_exchange.hpp"
#include "comm/shared_block.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <span>

namespace lockstep::measure {

namespace {

using comm::Communicator;

constexpr int warm_ups = 5;
constexpr double timeout_seconds = 300;

/// One way in which ranks exchange an array.
class Trial {
  public:
    virtual ~Trial() = default;
    /// Where this rank's values lie before `run`.
    virtual std::span<float> values() = 0;
    /// Whether they still lie there after it.
    virtual bool keeps_values() const { return false; }
    /// What is timed.
    ///
    /// Collective  over all ranks
    virtual void run() = 0;
    /// Where the result lies after `run`.
    virtual std::span<float const> result() = 0;
    /// The rank whose values are the result; none: the sum of all ranks' is.
    virtual int copied_rank() const { return -1; }
};

/// MPI_Allreduce, in place.
class MpiSum : public Trial {
  public:
    MpiSum(Communicator const& world, std::size_t count) : world_(world), values_(count) {}

    std::span<float> values() override { return values_; }
    void run() override { comm::all_reduce(world_, std::span(values_), comm::Reduce::sum); }
    std::span<float const> result() override { return values_; }

  private:
    Communicator const& world_;
    std::vector<float> values_;
};

/// The exchange of training with sums wanted everywhere, in the buckets of training, all of which
/// are there at once.
class OrderedSum : public Trial {
  public:
    OrderedSum(Communicator const& world, std::size_t count) : count_(count) {
        constexpr std::int64_t first_bucket = (1 << 20) / sizeof(float);
        auto const reduction_blocks =
            (static_cast<std::int64_t>(count) + comm::reduction_block - 1) / comm::reduction_block;
        comm::TreeExchangeOptions const options{
            .nodes = comm::subtrees_of_ranks(world.size(), world.size()),
            .partition = comm::Partition(reduction_blocks * comm::reduction_block, world.size(),
                                         first_bucket, 25 * first_bucket),
            .sums_everywhere = true,
            .timeout_seconds = timeout_seconds};
        exchange_ = comm::make_tree_exchange(world, options);
    }

    std::span<float> values() override { return {exchange_->gradients(), count_}; }
    void run() override {
        auto sum = exchange_->begin();
        for (int bucket = 0; bucket < exchange_->partition().buckets(); ++bucket) {
            sum.ready(bucket);
        }
        std::move(sum).finish({}, {});
    }
    std::span<float const> result() override {
        exchange_->publish();
        return values();
    }

  private:
    std::size_t count_;
    std::unique_ptr<comm::Exchange> exchange_;
};

/// Each rank copies the array of the next rank of its host.
class NeighbourCopy : public Trial {
  public:
    NeighbourCopy(Communicator const& world, std::size_t count)
        : host_(world.split_by_host()), count_(count),
          block_(host_, count * sizeof(float) * static_cast<std::size_t>(host_.size())),
          rank_of_host_(comm::all_gather(host_, world.rank())), copy_(count) {}

    std::span<float> values() override { return array_of(host_.rank()); }
    void run() override { std::ranges::copy(array_of(neighbour()), copy_.begin()); }
    bool keeps_values() const override { return true; }
    std::span<float const> result() override { return copy_; }
    int copied_rank() const override {
        return rank_of_host_[static_cast<std::size_t>(neighbour())];
    }

  private:
    int neighbour() const { return (host_.rank() + 1) % host_.size(); }
    std::span<float> array_of(int rank) const {
        auto* const arrays = reinterpret_cast<float*>(block_.data());
        return {arrays + static_cast<std::size_t>(rank) * count_, count_};
    }

    Communicator host_;
    std::size_t count_;
    comm::SharedBlock block_;
    std::vector<int> rank_of_host_;
    std::vector<float> copy_;
};

struct Variant {
    std::string name;
    /// Collective  over all ranks
    std::function<std::unique_ptr<Trial>(Communicator const&, std::size_t count)> make;
};

template <class Kind>
Variant variant(std::string name) {
    return {std::move(name), [](Communicator const& world, std::size_t count) {
                return std::unique_ptr<Trial>(std::make_unique<Kind>(world, count));
            }};
}

/// Every way that there is to try.
std::vector<Variant> all_variants() {
    return {variant<OrderedSum>("ordered"), variant<MpiSum>("mpi"), variant<NeighbourCopy>("copy")};
}

/// Whole numbers, so that sums over ranks are exact in any order.
float value(int rank, std::size_t at) {
    return static_cast<float>(at % 1021 + static_cast<std::size_t>(rank));
}

void require_right(Trial& trial, int ranks) {
    auto const result = trial.result();
    for (std::size_t at = 0; at < result.size(); ++at) {
        float expected = 0;
        for (int rank = 0; rank < ranks; ++rank) {
            bool const counts = trial.copied_rank() < 0 || trial.copied_rank() == rank;
            expected += counts ? value(rank, at) : 0;
        }
        if (result[at] != expected) {
            throw Error(ExitCode::software,
                        {concat("element ", at, " is wrong after the exchange"),
                         concat("it is ", result[at], ", but should be ", expected),
                         "This is a bug; please report it"});
        }
    }
}

} // namespace

std::vector<std::string> allreduce_variants() {
    std::vector<std::string> names;
    for (auto const& variant : all_variants()) {
        names.push_back(variant.name);
    }
    return names;
}

double seconds_of_successive_sums(Communicator const& world, std::uint64_t bytes,
                                  std::int64_t repeats) {
    OrderedSum trial(world, std::max<std::size_t>(bytes / sizeof(float), 1));
    std::vector<double> seconds;
    comm::barrier(world);
    Stopwatch watch;
    for (std::int64_t repeat = -warm_ups; repeat < repeats; ++repeat) {
        trial.run();
        auto const own = watch.restart();
        if (repeat >= 0) {
            seconds.push_back(own);
        }
    }
    comm::barrier(world); // all have what they need of the others
    return median(seconds);
}

Measurement measure_allreduce(Communicator const& world, std::string const& name,
                              std::uint64_t bytes, std::int64_t repeats) {
    auto const variants = all_variants();
    auto const variant = std::find_if(variants.begin(), variants.end(),
                                      [&](Variant const& each) { return each.name == name; });
    auto const count = std::max<std::size_t>(bytes / sizeof(float), 1);
    std::unique_ptr<Trial> trial = variant->make(world, count);
    std::vector<float> own(count);
    for (std::size_t at = 0; at < count; ++at) {
        own[at] = value(world.rank(), at);
    }
    std::vector<double> seconds;
    for (std::int64_t repeat = -warm_ups; repeat < repeats; ++repeat) {
        if (repeat == -warm_ups || !trial->keeps_values()) {
            std::ranges::copy(own, trial->values().begin());
        }
        comm::barrier(world); // all start at once, and find each other's values
        Stopwatch const watch;
        trial->run();
        double const own_seconds = watch.seconds();
        auto const slowest = comm::all_reduce(world, own_seconds, comm::Reduce::maximum);
        if (repeat >= 0) {
            seconds.push_back(slowest);
        }
    }
    comm::agree(world, "checking the sums", [&] { require_right(*trial, world.size()); });
    double const typical = median(seconds);
    return {"allreduce",
            name,
            count * sizeof(float),
            world.size(),
            seconds,
            {{"bytes_per_s", static_cast<double>(count * sizeof(float)) / typical}}};
}

} // namespace lockstep::measure
