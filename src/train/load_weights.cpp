#include "lockstep/train/load_weights.hpp"

#include "base/text.hpp"
#include "checkpoint/weights.hpp"
#include "lockstep/base/error.hpp"
#include "train/layout.hpp"

#include <set>

namespace lockstep::train {

namespace {

/// A single value has one dimension in some files and none in others.
h5::Shape without_single(h5::Shape const& shape) {
    return shape == h5::Shape{1} ? h5::Shape{} : shape;
}

void fill(torch::Tensor const& tensor, std::string const& name,
          checkpoint::Weights const& weights) {
    h5::Shape const shape(tensor.sizes().begin(), tensor.sizes().end());
    auto const* const entry = weights.find(name);
    bool const fits = entry != nullptr && without_single(entry->shape) == without_single(shape);
    if (!fits) {
        throw Error(
            ExitCode::data,
            {concat(weights.path().string(), " has no fitting model/", path_of(name)),
             concat("the deck's model needs ", h5::shape_text(shape), " there, but the file has ",
                    entry == nullptr ? "nothing" : h5::shape_text(entry->shape)),
             "Name a file of the deck's model, or the deck that this file was trained with"});
    }
    auto const type = entry->type == h5::Type::i64 ? torch::kInt64 : torch::kFloat32;
    auto const host = torch::empty(tensor.sizes(), type);
    weights.read(*entry, {static_cast<std::byte*>(host.mutable_data_ptr()), host.nbytes()});
    torch::Tensor(tensor).copy_(host);
}

} // namespace

std::vector<std::string> load_weights(nn::Model& model, checkpoint::VerifiedFile const& file) {
    torch::NoGradGuard const no_grad;
    auto const weights = checkpoint::open_weights(file);
    std::set<std::string> known;
    for (auto const& item : model.named_parameters()) {
        fill(item.value().detach(), item.key(), *weights);
        known.insert(item.key());
    }
    for (auto const& item : model.named_buffers()) {
        fill(item.value(), item.key(), *weights);
        known.insert(item.key());
    }
    std::vector<std::string> without_place;
    for (auto const& entry : weights->entries()) {
        if (!known.contains(entry.name)) {
            without_place.push_back(entry.name);
        }
    }
    return without_place;
}

} // namespace lockstep::train
