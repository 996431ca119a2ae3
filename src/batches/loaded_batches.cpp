#include "batches/loaded_batches.hpp"

#include "nn/to_device.hpp"

#include "prefetched_batches.hpp"

namespace lockstep::train {

namespace {

// Copied, since torch's own blocks are aligned alike every time and sums depend on alignment.
torch::Tensor copied(void const* values, std::vector<std::int64_t> const& shape, torch::Dtype type,
                     torch::Device device) {
    auto const options = torch::TensorOptions(type);
    auto const there = torch::from_blob(const_cast<void*>(values), shape, options);
    if (device.is_cpu()) {
        return there.clone();
    }
    return nn::to_device(there, device);
}

torch::Tensor lengths_of(std::vector<std::int64_t> const& offsets) {
    auto const ends = copied(offsets.data(), {static_cast<std::int64_t>(offsets.size())},
                             torch::kInt64, torch::kCPU);
    return ends.diff();
}

nn::Field to_field(data::Values const& values, data::FieldInfo const& info, std::int64_t samples,
                   torch::Device device) {
    std::vector<std::int64_t> shape(info.shape.begin(), info.shape.end());
    nn::Field field;
    if (info.ragged) {
        field.lengths = lengths_of(values.offsets);
        shape.insert(shape.begin(), values.offsets.back());
    } else {
        shape.insert(shape.begin(), samples);
    }
    field.values = info.whole ? copied(values.wholes.data(), shape, torch::kInt64, device)
                              : copied(values.reals.data(), shape, torch::kFloat32, device);
    return field;
}

nn::Fields to_fields(data::Batch const& batch, std::size_t first,
                     std::vector<data::FieldInfo> const& infos, torch::Device device) {
    auto const samples = static_cast<std::int64_t>(batch.indices.size());
    std::vector<nn::Field> fields;
    for (std::size_t at = 0; at < infos.size(); ++at) {
        fields.push_back(to_field(batch.fields.at(first + at), infos[at], samples, device));
    }
    return nn::Fields(std::move(fields));
}

} // namespace

task::Tensors to_tensors(data::Batch const& batch, std::vector<data::FieldInfo> const& inputs,
                         std::vector<data::FieldInfo> const& targets, torch::Device device) {
    return {to_fields(batch, 0, inputs, device),
            to_fields(batch, batch.first_target, targets, device)};
}

LoadedBatches::LoadedBatches(data::Loader& loader, std::vector<data::FieldInfo> inputs,
                             std::vector<data::FieldInfo> targets, torch::Device device)
    : loader_(loader), inputs_(std::move(inputs)), targets_(std::move(targets)), device_(device) {}

task::Tensors LoadedBatches::next() {
    return to_tensors(loader_.next(), inputs_, targets_, device_);
}

std::unique_ptr<BatchSource> batches_on(torch::Device device, data::Loader& loader,
                                        std::vector<data::FieldInfo> const& inputs,
                                        std::vector<data::FieldInfo> const& targets) {
    if (device.is_cpu()) {
        return std::make_unique<LoadedBatches>(loader, inputs, targets, device);
    }
    return std::make_unique<PrefetchedBatches>(loader, inputs, targets, device);
}

} // namespace lockstep::train
