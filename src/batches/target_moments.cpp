#include "batches/target_moments.hpp"

#include "batches/validation_share.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/replica_tree.hpp"
#include "data/plan.hpp"
#include "h5/element_type.hpp"
#include "h5/file.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

namespace lockstep::train {

namespace {

constexpr char const* reading_targets = "reading the targets";
constexpr std::int64_t max_named = 64; ///< values of a sample that have moments of their own
constexpr std::int64_t max_read = std::int64_t{1} << 27; ///< values of all samples

/// The first target of samples.
std::vector<double> targets_of(data::Dataset const& set, data::Span part, std::int64_t of_sample) {
    std::vector<std::int64_t> indices(static_cast<std::size_t>(part.count));
    std::iota(indices.begin(), indices.end(), part.first);
    auto const values = static_cast<std::size_t>(part.count * of_sample);
    if (set.targets().front().whole) {
        std::vector<std::int64_t> wholes(values);
        set.read_targets(indices, wholes);
        return {wholes.begin(), wholes.end()};
    }
    std::vector<float> reals(values);
    set.read_targets(indices, reals);
    return {reals.begin(), reals.end()};
}

/// Sums by block, of which each rank adds up some.
class BlockSums {
  public:
    BlockSums(data::Dataset const& set, std::int64_t of_sample)
        : set_(set), of_sample_(of_sample),
          columns_(static_cast<std::size_t>(of_sample <= max_named ? of_sample : 1)),
          plan_{set.samples(), std::clamp<std::int64_t>(max_block / of_sample, 1, 4096)},
          sums_(2 * columns_ * static_cast<std::size_t>(plan_.batches()), 0) {}

    /// Adds up this rank's blocks, less the first sample's values: sums of them, and of squares,
    /// which stay exact where values are far from 0.
    void add(int rank, int ranks) {
        auto const first = targets_of(set_, {0, 1}, of_sample_);
        origin_.assign(first.begin(), first.begin() + static_cast<std::ptrdiff_t>(columns_));
        auto const mine = plan_.batches_of(rank, ranks);
        for (std::int64_t block = mine.first; block < mine.first + mine.count; ++block) {
            auto const values = targets_of(set_, plan_.part(block), of_sample_);
            for (std::size_t i = 0; i < values.size(); ++i) {
                auto const column = i % columns_;
                auto const off = values[i] - origin_[column];
                sum(column, block) += off;
                sum(columns_ + column, block) += off * off;
            }
        }
    }

    /// All of them; each block is non-zero on one rank only.
    std::span<double> all() noexcept { return sums_; }

    TargetMoments moments() const {
        auto const blocks = static_cast<std::size_t>(plan_.batches());
        auto const total = [&](std::size_t at) {
            return comm::tree_sum(std::span(sums_).subspan(at * blocks, blocks));
        };
        auto const count =
            static_cast<double>(set_.samples() * of_sample_) / static_cast<double>(columns_);
        TargetMoments moments;
        for (std::size_t column = 0; column < columns_; ++column) {
            auto const off = total(column) / count;
            auto const square = total(columns_ + column) / count - off * off;
            moments.mean.push_back(origin_[column] + off);
            moments.std.push_back(std::sqrt(std::max(square, 0.0)));
        }
        return moments;
    }

  private:
    static constexpr std::int64_t max_block = 1 << 18; ///< values

    double& sum(std::size_t at, std::int64_t block) {
        return sums_[at * static_cast<std::size_t>(plan_.batches()) +
                     static_cast<std::size_t>(block)];
    }

    data::Dataset const& set_;
    std::int64_t of_sample_;
    std::size_t columns_;
    data::EvaluationPlan plan_;
    std::vector<double> sums_; ///< [2 * columns][blocks]
    std::vector<double> origin_;
};

} // namespace

std::optional<TargetMoments> target_moments(comm::Communicator const& world,
                                            config::Deck const& deck, data::Dataset const* train) {
    if (deck.task.kind != "regression" || train == nullptr || train->targets().size() != 1 ||
        train->targets().front().ragged || train->samples() < 2) {
        return std::nullopt;
    }
    auto const of_sample = static_cast<std::int64_t>(h5::elements(train->targets().front().shape));
    bool const few = of_sample > 0 && train->samples() <= max_read / of_sample;
    if (of_sample == 0 || (!few && !deck.data.normalise_targets)) {
        return std::nullopt;
    }
    std::optional<data::Dataset> rest;
    std::optional<BlockSums> sums;
    comm::agree(world, reading_targets, [&] {
        if (auto divided = divide(deck, *train)) {
            rest.emplace(std::move(divided->first));
        }
        sums.emplace(rest ? *rest : *train, of_sample).add(world.rank(), world.size());
    });
    comm::all_reduce(world, sums->all(), comm::Reduce::sum);
    return sums->moments();
}

} // namespace lockstep::train
