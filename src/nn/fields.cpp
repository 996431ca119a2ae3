#include "lockstep/nn/fields.hpp"

#include <algorithm>

namespace lockstep::nn {

std::string sizes_text(torch::IntArrayRef sizes) {
    return h5::shape_text({sizes.begin(), sizes.end()});
}

torch::Tensor Field::padded() const {
    if (!lengths.defined()) {
        return values;
    }
    auto const count = lengths.size(0);
    auto shape = values.sizes().vec();
    // Samples of no rows get the row of padding that they would have beside others.
    shape[0] = count == 0 ? 0 : std::max<std::int64_t>(lengths.max().item<std::int64_t>(), 1);
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

Fields Fields::sample(std::int64_t at) const {
    std::vector<Field> fields;
    for (auto const& [values, lengths] : fields_) {
        if (lengths.defined()) {
            auto const first = lengths.narrow(0, 0, at).sum().item<std::int64_t>();
            auto const rows = lengths.narrow(0, at, 1);
            fields.push_back({values.narrow(0, first, rows.item<std::int64_t>()), rows});
        } else {
            fields.push_back({values.narrow(0, at, 1), {}});
        }
    }
    return Fields(std::move(fields));
}

Fields zeros(std::vector<data::FieldInfo> const& infos, std::int64_t samples,
             torch::Device device) {
    constexpr std::int64_t rows = 64;
    std::vector<Field> fields;
    for (auto const& info : infos) {
        std::vector<std::int64_t> shape(info.shape.begin(), info.shape.end());
        shape.insert(shape.begin(), info.ragged ? samples * rows : samples);
        auto const type = info.whole ? torch::kInt64 : torch::kFloat32;
        Field field{torch::zeros(shape, torch::TensorOptions(type).device(device)), {}};
        if (info.ragged) {
            field.lengths = torch::full({samples}, rows, torch::kInt64);
        }
        fields.push_back(std::move(field));
    }
    return Fields(std::move(fields));
}

} // namespace lockstep::nn
