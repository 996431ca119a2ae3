#include "optimizer/privacy.hpp"

#include "base/text.hpp"
#include "federate/noise.hpp"

#include <algorithm>
#include <cstring>

namespace lockstep::train {

std::uint64_t Privacy::draw_key(std::int64_t step) const {
    auto const key = key_.derived(concat("draw ", step));
    std::uint64_t bits = 0;
    std::memcpy(&bits, key.bytes().data(), sizeof bits);
    return bits;
}

void Privacy::add_noise(torch::Tensor const& gradients, Layout const& layout,
                        std::vector<Range> const& owned, std::int64_t step) const {
    torch::NoGradGuard const no_grad;
    std::vector<double> noise(reduction_block);
    auto entry = layout.entries.begin();
    for (auto const range : owned) {
        for (auto block = range.first; block < range.last; block += reduction_block) {
            std::ranges::fill(noise, 0.0);
            auto const key = key_.derived(concat("noise ", step, " ", block / reduction_block));
            federate::add_gaussian_noise(noise, key, options_.noise * options_.clip);
            auto const of_block =
                torch::tensor(noise, torch::kFloat64).to(gradients.device(), torch::kFloat32);
            while (entry != layout.entries.end() && entry->first + entry->count <= block) {
                ++entry;
            }
            for (auto at = entry; at != layout.entries.end() && at->first < block + reduction_block;
                 ++at) {
                auto const first = std::max(at->first, block);
                auto const count = std::min(at->first + at->count, block + reduction_block) - first;
                if (at->trained && count > 0) {
                    gradients.narrow(0, first, count)
                        .add_(of_block.narrow(0, first - block, count));
                }
            }
        }
    }
}

void add_clipped(torch::Tensor const& sum, torch::Tensor const& gradient, double clip) {
    torch::NoGradGuard const no_grad;
    auto const norm = gradient.to(torch::kFloat64).square().sum().sqrt();
    sum.add_(gradient * (clip / norm.clamp_min(clip)).to(torch::kFloat32));
}

} // namespace lockstep::train
