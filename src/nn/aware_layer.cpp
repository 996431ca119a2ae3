#include "nn/aware_layer.hpp"

#include <cmath>

namespace lockstep::nn {

namespace {

constexpr double largest_value = 127;
constexpr double largest_input = 255;

/// What a layer has beside its own: scales and the zero point.
struct AwareScales {
    torch::Tensor input;
    torch::Tensor weight;
    torch::Tensor zero;

    AwareScales(torch::nn::Module& layer, std::int64_t outputs)
        : input(layer.register_parameter(input_log_scale,
                                         torch::full({1}, std::log(4 / largest_input)))),
          weight(layer.register_parameter(weight_log_scale,
                                          torch::full({outputs}, std::log(1 / largest_value)))),
          zero(layer.register_buffer(input_zero, torch::zeros({1}))) {}

    torch::Tensor inputs(torch::Tensor const& values) const {
        return rounded_to_bytes(values, input, zero, 0, largest_input);
    }
    torch::Tensor weights(torch::Tensor const& values) const {
        std::vector<std::int64_t> shape(static_cast<std::size_t>(values.dim()), 1);
        shape.front() = values.size(0);
        return rounded_to_bytes(values, weight.view(shape), torch::zeros_like(zero), -largest_value,
                                largest_value);
    }
};

class AwareConv2dImpl : public torch::nn::Conv2dImpl {
  public:
    explicit AwareConv2dImpl(torch::nn::Conv2dOptions const& options)
        : torch::nn::Conv2dImpl(options), scales_(*this, options.out_channels()) {}

    torch::Tensor forward(torch::Tensor const& inputs) {
        return torch::conv2d(scales_.inputs(inputs), scales_.weights(weight), bias,
                             options.stride(),
                             std::get<torch::ExpandingArray<2>>(options.padding()),
                             options.dilation(), options.groups());
    }

  private:
    AwareScales scales_;
};
TORCH_MODULE(AwareConv2d);

class AwareLinearImpl : public torch::nn::LinearImpl {
  public:
    AwareLinearImpl(std::int64_t inputs, std::int64_t outputs)
        : torch::nn::LinearImpl(inputs, outputs), scales_(*this, outputs) {}

    torch::Tensor forward(torch::Tensor const& inputs) {
        return torch::linear(scales_.inputs(inputs), scales_.weights(weight), bias);
    }

  private:
    AwareScales scales_;
};
TORCH_MODULE(AwareLinear);

} // namespace

torch::Tensor rounded_to_bytes(torch::Tensor const& values, torch::Tensor const& log_scale,
                               torch::Tensor const& zero, double min, double max) {
    auto const count = static_cast<double>(values.numel()) / static_cast<double>(log_scale.numel());
    auto const share = 1 / std::sqrt(std::max(count, 1.0) * max);
    auto const slow =
        log_scale * share + (log_scale * (1 - share)).detach(); // its gradient is less
    auto const scale = slow.exp();
    auto const places = (values / scale + zero).clamp(min, max);
    auto const whole = places + (places.round() - places).detach();
    return (whole - zero) * scale;
}

torch::nn::AnyModule convolution(torch::nn::Conv2dOptions const& options, bool aware) {
    return aware ? torch::nn::AnyModule(AwareConv2d(options))
                 : torch::nn::AnyModule(torch::nn::Conv2d(options));
}

torch::nn::AnyModule fully_connected(std::int64_t inputs, std::int64_t outputs, bool aware) {
    return aware ? torch::nn::AnyModule(AwareLinear(inputs, outputs))
                 : torch::nn::AnyModule(torch::nn::Linear(inputs, outputs));
}

} // namespace lockstep::nn
