#include "nn/aware_layer.hpp"

#include "nn/adaptable_linear.hpp"

#include <cmath>
#include <memory>

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

/// `Plain` is a convolution over that many dimensions.
template <class Plain, std::size_t dimensions>
class AwareConvolution : public Plain {
  public:
    explicit AwareConvolution(torch::nn::ConvOptions<dimensions> const& options)
        : Plain(options), scales_(*this, options.out_channels()) {}

    torch::Tensor forward(torch::Tensor const& inputs) {
        auto const& how = this->options;
        return torch::convolution(
            scales_.inputs(inputs), scales_.weights(this->weight), this->bias, how.stride(),
            std::get<torch::ExpandingArray<dimensions>>(how.padding()), how.dilation(),
            /*transposed=*/false,
            /*output_padding=*/torch::ExpandingArray<dimensions>(0), how.groups());
    }

  private:
    AwareScales scales_;
};

template <class Plain, std::size_t dimensions>
torch::nn::AnyModule made(torch::nn::ConvOptions<dimensions> const& options, bool aware) {
    if (aware) {
        return torch::nn::AnyModule(std::make_shared<AwareConvolution<Plain, dimensions>>(options));
    }
    return torch::nn::AnyModule(std::make_shared<Plain>(options));
}

class AwareLinearImpl : public torch::nn::LinearImpl {
  public:
    explicit AwareLinearImpl(torch::nn::LinearOptions const& options)
        : torch::nn::LinearImpl(options), scales_(*this, options.out_features()) {}

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

torch::nn::AnyModule convolution(torch::nn::Conv1dOptions const& options, bool aware) {
    return made<torch::nn::Conv1dImpl>(options, aware);
}

torch::nn::AnyModule convolution(torch::nn::Conv2dOptions const& options, bool aware) {
    return made<torch::nn::Conv2dImpl>(options, aware);
}

torch::nn::AnyModule convolution(torch::nn::Conv3dOptions const& options, bool aware) {
    return made<torch::nn::Conv3dImpl>(options, aware);
}

torch::nn::AnyModule fully_connected(torch::nn::LinearOptions const& options, bool aware) {
    return aware ? torch::nn::AnyModule(AwareLinear(options))
                 : torch::nn::AnyModule(AdaptableLinear(options));
}

torch::nn::AnyModule fully_connected(std::int64_t inputs, std::int64_t outputs, bool aware) {
    return fully_connected(torch::nn::LinearOptions(inputs, outputs), aware);
}

} // namespace lockstep::nn
