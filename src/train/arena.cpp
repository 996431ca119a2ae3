#include "lockstep/train/arena.hpp"

#include "lockstep/base/error.hpp"
#include "lockstep/base/text.hpp"

namespace lockstep::train {

Arena::Arena(nn::Model& model, Layout const& layout, torch::Device device)
    : model_(model), layout_(layout) {
    torch::NoGradGuard const no_grad;
    model.to(device);
    parameters_ = torch::zeros({layout.size}, torch::TensorOptions(torch::kFloat32).device(device));
    auto named = model.named_parameters();
    for (auto const& entry : layout.entries) {
        auto& parameter = named[entry.name];
        if (parameter.scalar_type() != torch::kFloat32) {
            throw Error(ExitCode::usage, {concat("parameter ", entry.name),
                                          concat("is of type ", parameter.scalar_type()),
                                          "Models are trained in float32 here"});
        }
        auto view = parameters_.narrow(0, entry.first, entry.count).view(entry.shape);
        view.copy_(parameter);
        parameter.set_data(view);
    }
}

torch::Tensor Arena::new_gradients() const {
    return torch::zeros_like(parameters_);
}

void Arena::bind_gradients(torch::Tensor const& gradients) const {
    auto named = model_.named_parameters();
    for (auto const& entry : layout_.entries) {
        named[entry.name].mutable_grad() =
            gradients.narrow(0, entry.first, entry.count).view(entry.shape);
    }
}

Buffers::Buffers(nn::Model& model) : model_(model) {
    std::int64_t float_count = 0;
    std::int64_t integer_count = 0;
    for (auto const& item : model.named_buffers()) {
        auto const type = item.value().scalar_type();
        if (type == torch::kFloat32) {
            float_count += item.value().numel();
        } else if (type == torch::kInt64) {
            integer_count += item.value().numel();
        } else {
            throw Error(ExitCode::usage,
                        {concat("buffer ", item.key()), concat("is of type ", type),
                         "Buffers are float32 or int64 here"});
        }
    }
    floats = torch::zeros({float_count}, torch::kFloat32);
    integers = torch::zeros({integer_count}, torch::kInt64);
    collect();
}

template <class Action>
void Buffers::for_each(Action const& action) const {
    std::int64_t float_at = 0;
    std::int64_t integer_at = 0;
    for (auto& item : model_.named_buffers()) {
        auto const& buffer = item.value();
        bool const is_float = buffer.scalar_type() == torch::kFloat32;
        auto& at = is_float ? float_at : integer_at;
        action(item.key(), buffer, is_float, at);
        at += buffer.numel();
    }
}

void Buffers::collect() {
    torch::NoGradGuard const no_grad;
    for_each([this](auto const&, torch::Tensor const& buffer, bool is_float, std::int64_t at) {
        (is_float ? floats : integers).narrow(0, at, buffer.numel()).copy_(buffer.flatten());
    });
}

void Buffers::restore() const {
    torch::NoGradGuard const no_grad;
    for_each([this](auto const&, torch::Tensor buffer, bool is_float, std::int64_t at) {
        auto const& flat = is_float ? floats : integers;
        buffer.copy_(flat.narrow(0, at, buffer.numel()).view(buffer.sizes()));
    });
}

std::vector<h5::View> Buffers::views(std::string const& prefix, std::string const& floats_path,
                                     std::string const& integers_path) const {
    std::vector<h5::View> views;
    for_each(
        [&](std::string const& name, torch::Tensor const& buffer, bool is_float, std::int64_t at) {
            // A single value has a dimension of one: HDF5 maps no scalars.
            h5::Shape shape(buffer.sizes().begin(), buffer.sizes().end());
            views.push_back({prefix + "/" + path_of(name), is_float ? floats_path : integers_path,
                             static_cast<std::uint64_t>(at), shape.empty() ? h5::Shape{1} : shape});
        });
    return views;
}

} // namespace lockstep::train
