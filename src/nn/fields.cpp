#include "lockstep/nn/fields.hpp"

namespace lockstep::nn {

torch::Tensor Field::padded() const {
    if (!lengths.defined()) {
        return values;
    }
    auto const count = lengths.size(0);
    auto shape = values.sizes().vec();
    shape[0] = count == 0 ? 0 : lengths.max().item<std::int64_t>();
    shape.insert(shape.begin(), count);
    auto padded = torch::zeros(shape, values.options());
    std::int64_t row = 0;
    for (std::int64_t sample = 0; sample < count; ++sample) {
        auto const rows = lengths[sample].item<std::int64_t>();
        padded[sample].narrow(0, 0, rows).copy_(values.narrow(0, row, rows));
        row += rows;
    }
    return padded;
}

} // namespace lockstep::nn
