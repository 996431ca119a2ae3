#include "device/host_copies.hpp"

#include "nn/to_device.hpp"

#include <torch/torch.h>

#include <algorithm>
#include <numeric>

namespace lockstep::train {

std::vector<torch::Tensor> host_copies(std::vector<torch::Tensor> const& tensors) {
    if (tensors.empty() || tensors.front().is_cpu()) {
        return tensors;
    }
    torch::NoGradGuard const no_grad;
    // The longest types first, so that each begins where it may.
    std::vector<std::size_t> order(tensors.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::ranges::greater(),
                             [&](std::size_t at) { return tensors[at].element_size(); });
    std::vector<torch::Tensor> bytes;
    for (auto const at : order) {
        bytes.push_back(tensors[at].reshape(-1).view(torch::kUInt8));
    }
    auto const all = nn::to_host(torch::cat(bytes));
    std::vector<torch::Tensor> copies(tensors.size());
    std::int64_t first = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
        auto const& tensor = tensors[order[i]];
        copies[order[i]] =
            all.narrow(0, first, bytes[i].numel()).view(tensor.scalar_type()).view(tensor.sizes());
        first += bytes[i].numel();
    }
    return copies;
}

} // namespace lockstep::train
