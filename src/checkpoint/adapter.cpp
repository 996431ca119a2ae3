#include "checkpoint/adapter.hpp"

#include <vector>

namespace lockstep::checkpoint {

void merge_adapter(std::span<float> weight, std::span<float const> a, std::span<float const> b,
                   std::size_t outputs, double scale) {
    auto const inputs = weight.size() / outputs;
    auto const rank = b.size() / outputs;
    std::vector<double> row(inputs);
    for (std::size_t out = 0; out < outputs; ++out) {
        row.assign(inputs, 0);
        for (std::size_t k = 0; k < rank; ++k) {
            auto const factor = static_cast<double>(b[out * rank + k]);
            for (std::size_t in = 0; in < inputs; ++in) {
                row[in] += factor * static_cast<double>(a[k * inputs + in]);
            }
        }
        for (std::size_t in = 0; in < inputs; ++in) {
            auto& value = weight[out * inputs + in];
            value = static_cast<float>(static_cast<double>(value) + scale * row[in]);
        }
    }
}

} // namespace lockstep::checkpoint
