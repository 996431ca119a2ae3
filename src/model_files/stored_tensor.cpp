#include "model_files/stored_tensor.hpp"

#include "base/text.hpp"
#include "nn/shapes.hpp"

#include <optional>
#include <utility>

namespace lockstep::train {

namespace {

/// A single value has one dimension in some files and none in others.
h5::Shape without_single(h5::Shape const& shape) {
    return shape == h5::Shape{1} ? h5::Shape{} : shape;
}

/// The shape of a tensor that lies in an entry of this shape; nothing where none can.
std::optional<h5::Shape> shape_within(h5::Shape shape, nn::WeightSource const& source) {
    auto const parts = static_cast<std::uint64_t>(source.parts);
    if (source.transposed) {
        if (shape.size() != 2) {
            return std::nullopt;
        }
        std::swap(shape[0], shape[1]);
    }
    if (parts > 1) {
        if (shape.empty() || shape[0] % parts != 0) {
            return std::nullopt;
        }
        shape[0] /= parts;
    }
    return shape;
}

} // namespace

std::string StoredTensor::text() const {
    return entry == nullptr ? "" : concat(entry->name, " ", h5::shape_text(entry->shape));
}

StoredTensor stored_tensor(torch::Tensor const& tensor, std::string const& name,
                           nn::Model const& model, checkpoint::Weights const& weights) {
    h5::Shape const shape(tensor.sizes().begin(), tensor.sizes().end());
    auto const fits = [&](checkpoint::Weights::TensorInfo const& entry,
                          nn::WeightSource const& source) {
        auto const within = shape_within(entry.shape, source);
        return within && without_single(*within) == without_single(shape);
    };
    if (auto const* const own = weights.find(name)) {
        return {own, {name}, fits(*own, {name})};
    }
    StoredTensor found;
    for (auto const& source : model.other_names(name)) {
        if (auto const* const entry = weights.find(source.name)) {
            found = {entry, source, fits(*entry, source)};
            if (found.fits) {
                break;
            }
        }
    }
    return found;
}

torch::Tensor values_of(checkpoint::Weights const& weights,
                        checkpoint::Weights::TensorInfo const& entry) {
    std::vector<std::int64_t> const sizes(entry.shape.begin(), entry.shape.end());
    auto values =
        torch::empty(sizes, entry.type == h5::Type::i64 ? torch::kInt64 : torch::kFloat32);
    weights.read(entry, {static_cast<std::byte*>(values.mutable_data_ptr()), values.nbytes()});
    return values;
}

void fill(torch::Tensor const& tensor, StoredTensor const& stored,
          checkpoint::Weights const& weights) {
    auto values = values_of(weights, *stored.entry);
    auto const& source = stored.source;
    if (source.transposed) {
        values = values.t();
    }
    if (source.parts > 1) {
        values = values.chunk(source.parts, 0).at(static_cast<std::size_t>(source.part));
    }
    torch::Tensor(tensor).copy_(values.reshape(tensor.sizes()));
}

} // namespace lockstep::train
