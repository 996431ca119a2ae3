#include "exchange/power_sgd_exchange.hpp"

#include "arena/arena.hpp"
#include "arena/block_squares.hpp"
#include "base/clock.hpp"
#include "base/random.hpp"
#include "comm/tree_sum.hpp"
#include "nn/to_device.hpp"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace lockstep::train {

namespace {

/// As many elements as begin on an aligned place after them.
std::int64_t aligned(std::int64_t elements) {
    return (elements + arena_unit - 1) / arena_unit * arena_unit;
}

std::int64_t in_blocks(std::int64_t elements) {
    return std::max<std::int64_t>((elements + reduction_block - 1) / reduction_block, 1) *
           reduction_block;
}

/// Gradient ≈ left · rightᵀ.
struct Factors {
    Matrix matrix;
    std::int64_t left_at = 0;  ///< of [rows, rank], in what is sent first
    std::int64_t right_at = 0; ///< of [columns, rank], in what is sent then
    std::int64_t error_at = 0;
};

/// What goes where.
struct Parcels {
    std::vector<Factors> factors;
    std::vector<Range> plain; ///< of the arena, sent first as it is
    std::int64_t plain_at = 0;
    std::int64_t first = 0; ///< elements that are sent first, whole reduction blocks
    std::int64_t then = 0;
    std::int64_t errors = 0;

    explicit Parcels(PowerSgdOptions const& options) {
        std::int64_t next = 0;
        for (auto const& matrix : options.matrices) {
            factors.push_back({matrix, plain_at, then, errors});
            plain_at += aligned(matrix.rows * options.rank);
            then += aligned(matrix.columns * options.rank);
            errors += aligned(matrix.count());
            if (next < matrix.first) {
                plain.push_back({next, matrix.first});
            }
            next = matrix.first + matrix.count();
        }
        if (next < options.partition.size()) {
            plain.push_back({next, options.partition.size()});
        }
        first = plain_at;
        for (auto const& range : plain) {
            first += range.count();
        }
        first = in_blocks(first);
        then = in_blocks(then);
    }
};

/// Makes the columns orthonormal, one after the other (modified Gram-Schmidt); those of zeros stay.
void orthonormalise(torch::Tensor const& columns) {
    constexpr double min_norm = 1e-30;
    for (std::int64_t at = 0; at < columns.size(1); ++at) {
        auto const column = columns.narrow(1, at, 1);
        column.div_(column.norm().clamp_min(min_norm));
        auto const rest = columns.narrow(1, at + 1, columns.size(1) - at - 1);
        rest.sub_(column.mm(column.t().mm(rest)));
    }
}

/// Sends all of an exchange's gradients at once.
void send(comm::Exchange const& exchange, comm::GradientSum sum, std::span<double> step_sums,
          std::span<std::byte> payload) {
    for (int bucket = 0; bucket < exchange.partition().buckets(); ++bucket) {
        sum.ready(bucket);
    }
    std::move(sum).finish(step_sums, payload);
}

class PowerSgdExchange : public comm::Exchange {
  public:
    PowerSgdExchange(PowerSgdOptions const& options, MakeExchange const& make)
        : Exchange(options.partition), rank_(options.rank), ranks_(options.ranks),
          parcels_(options), first_(make(parcels_.first, true)), then_(make(parcels_.then, false)),
          lefts_(borrowed(first_->gradients(), parcels_.first, options.device)),
          rights_(borrowed(then_->gradients(), parcels_.then, options.device)),
          squares_(static_cast<std::size_t>(partition_.reduction_blocks())) {
        auto const form = torch::TensorOptions(torch::kFloat32).device(options.device);
        gradients_ = torch::zeros({partition_.size()}, form);
        parameters_ = torch::zeros({partition_.size()}, form);
        errors_ = torch::zeros({parcels_.errors}, form);
        auto generator =
            at::detail::createCPUGenerator(random_key(options.seed, Stream::compression));
        last_rights_ = torch::randn({parcels_.then}, generator).to(options.device);
    }

    std::string name() const override { return "PowerSGD over " + first_->name(); }
    int rank() const noexcept override { return first_->rank(); }
    bool sums_everywhere() const noexcept override { return true; }
    void abandon() noexcept override {
        first_->abandon();
        then_->abandon();
    }
    float* gradients() noexcept override { return gradients_.mutable_data_ptr<float>(); }
    float* parameters() noexcept override { return parameters_.mutable_data_ptr<float>(); }

    std::vector<comm::Carried> carried() override {
        return {{.name = "compression/error",
                 .values = errors_.mutable_data_ptr<float>(),
                 .count = parcels_.errors,
                 .first = parcels_.errors * rank(),
                 .elements = parcels_.errors * ranks_},
                {.name = "compression/right",
                 .values = last_rights_.mutable_data_ptr<float>(),
                 .count = parcels_.then,
                 .elements = parcels_.then,
                 .is_written_here = rank() == 0}};
    }

    void begin_sum(double unit) override {
        unit_ = unit;
        first_sum_.emplace(first_->begin());
        then_sum_.emplace(then_->begin());
    }
    // The factors of a gradient need all of it, and the second those of all ranks.
    void bucket_ready(int /*index*/) override {}

    void finish_sum(std::span<double> step_sums, std::span<std::byte> payload) override {
        torch::NoGradGuard const no_grad;
        for (auto const& each : parcels_.factors) {
            auto const wanted = gradient(each);
            wanted.div_(unit_).add_(error(each));
            left(each).copy_(wanted.mm(right(last_rights_, each)));
        }
        each_plain(
            [](torch::Tensor const& in_arena, torch::Tensor const& sent) { sent.copy_(in_arena); });
        send(*first_, std::move(*first_sum_), step_sums, payload);

        for (auto const& each : parcels_.factors) {
            orthonormalise(left(each));
            auto const wanted = gradient(each);
            auto const own = wanted.t().mm(left(each));
            right(rights_, each).copy_(own);
            wanted.sub_(left(each).mm(own.t())); // what is lost
        }
        send(*then_, std::move(*then_sum_), {}, {});

        // A step that will be skipped leaves nothing behind.
        bool const finite = torch::isfinite(lefts_).all().item<bool>() &&
                            torch::isfinite(rights_).all().item<bool>();
        for (auto const& each : parcels_.factors) {
            if (finite) {
                error(each).copy_(gradient(each));
            }
            auto const sum = left(each).mm(right(rights_, each).t());
            gradient(each).copy_(sum.mul_(unit_));
        }
        if (finite) {
            last_rights_.copy_(rights_);
        }
        each_plain(
            [](torch::Tensor const& in_arena, torch::Tensor const& sent) { in_arena.copy_(sent); });
        add_squares();
    }
    std::span<double const> squares() const override { return squares_; }
    void send_parameters() override { // every rank has updated all of its own parameters
        first_->publish();
        then_->publish();
        add_costs();
    }

  private:
    torch::Tensor gradient(Factors const& each) const {
        auto const& matrix = each.matrix;
        return gradients_.narrow(0, matrix.first, matrix.count())
            .view({matrix.rows, matrix.columns});
    }
    torch::Tensor error(Factors const& each) const {
        auto const& matrix = each.matrix;
        return errors_.narrow(0, each.error_at, matrix.count()).view({matrix.rows, matrix.columns});
    }
    torch::Tensor left(Factors const& each) const {
        return lefts_.narrow(0, each.left_at, each.matrix.rows * rank_).view({-1, rank_});
    }
    torch::Tensor right(torch::Tensor const& all, Factors const& each) const {
        return all.narrow(0, each.right_at, each.matrix.columns * rank_).view({-1, rank_});
    }
    template <class Copy>
    void each_plain(Copy const& copy) const {
        auto at = parcels_.plain_at;
        for (auto const& range : parcels_.plain) {
            copy(gradients_.narrow(0, range.first, range.count()),
                 lefts_.narrow(0, at, range.count()));
            at += range.count();
        }
    }
    void add_squares() {
        auto const by_block = nn::to_host(squares_of_blocks(gradients_));
        std::copy_n(by_block.const_data_ptr<double>(), squares_.size(), squares_.begin());
    }
    void add_costs() {
        cost_ = first_->cost();
        cost_.imbalance_s += then_->cost().imbalance_s;
        cost_.exposed_s += then_->cost().exposed_s + cost_.hidden_s + then_->cost().hidden_s;
        cost_.hidden_s = 0; // nothing leaves before backward has ended
        cost_.bytes += then_->cost().bytes;
        cost_.messages += then_->cost().messages;
    }

    std::int64_t rank_;
    int ranks_;
    Parcels parcels_;
    std::unique_ptr<comm::Exchange> first_;
    std::unique_ptr<comm::Exchange> then_;
    std::optional<comm::GradientSum> first_sum_; ///< none: before the first step
    std::optional<comm::GradientSum> then_sum_;
    torch::Tensor lefts_; ///< and what is sent as it is; the first exchange's
    torch::Tensor rights_;
    torch::Tensor gradients_;
    torch::Tensor parameters_;
    torch::Tensor errors_;
    torch::Tensor last_rights_; ///< of the last step, from which the next one starts
    std::vector<double> squares_;
    double unit_ = 1;
};

} // namespace

std::vector<Matrix> matrices_of(Layout const& layout, std::int64_t rank) {
    std::vector<Matrix> matrices;
    for (auto const& entry : layout.entries) {
        if (entry.shape.size() < 2 || entry.count == 0) {
            continue;
        }
        Matrix const matrix{entry.first, entry.shape[0], entry.count / entry.shape[0]};
        if (2 * rank * (matrix.rows + matrix.columns) <= matrix.count()) {
            matrices.push_back(matrix);
        }
    }
    return matrices;
}

std::unique_ptr<comm::Exchange> power_sgd_exchange(PowerSgdOptions const& options,
                                                   MakeExchange const& make) {
    return std::make_unique<PowerSgdExchange>(options, make);
}

} // namespace lockstep::train
