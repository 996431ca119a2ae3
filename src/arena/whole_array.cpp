#include "arena/whole_array.hpp"

namespace lockstep::train {

torch::Tensor whole_of(torch::Tensor const& shard, std::vector<Range> const& owned,
                       std::int64_t size, GatherSums const& gather) {
    // Each element is non-zero on at most one rank, so that sums are exact.
    auto const all = torch::zeros({size}, torch::kFloat64);
    std::int64_t own = 0;
    for (auto const range : owned) {
        all.narrow(0, range.first, range.count()).copy_(shard.narrow(0, own, range.count()));
        own += range.count();
    }
    if (gather) {
        gather({all.mutable_data_ptr<double>(), static_cast<std::size_t>(all.numel())});
    }
    return all.to(torch::kFloat32);
}

void take_owned(torch::Tensor const& whole, std::vector<Range> const& owned,
                torch::Tensor const& shard) {
    std::int64_t own = 0;
    for (auto const range : owned) {
        shard.narrow(0, own, range.count()).copy_(whole.narrow(0, range.first, range.count()));
        own += range.count();
    }
}

} // namespace lockstep::train
