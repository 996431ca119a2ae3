#include "nn/adapter.hpp"

#include "nn/adaptable_linear.hpp"

namespace lockstep::nn {

torch::Tensor Adapter::operator()(torch::Tensor const& inputs) const {
    return torch::linear(torch::linear(inputs, a), b) * scale;
}

std::vector<AdapterPlace> adapter_places(Model& model) {
    if (auto* const own = dynamic_cast<HasAdapterPlaces*>(&model)) {
        return own->adapter_places();
    }
    std::vector<AdapterPlace> places;
    for (auto const& item : model.named_modules()) {
        if (auto const layer = std::dynamic_pointer_cast<AdaptableLinearImpl>(item.value())) {
            places.push_back({item.key(), layer->weight,
                              [layer](Adapter const& adapter) { layer->adapt(adapter); }});
        }
    }
    return places;
}

} // namespace lockstep::nn
