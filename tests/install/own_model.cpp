// A network of a user's own: two layers and a skip.
#include <torch/nn/modules/linear.h>

#include <lockstep/nn/plugin.hpp>

namespace {

class Skip : public lockstep::nn::Model {
  public:
    Skip(std::int64_t inputs, std::int64_t hidden, std::int64_t outputs)
        : first_(register_module("first", torch::nn::Linear(inputs, hidden))),
          second_(register_module("second", torch::nn::Linear(hidden, outputs))),
          skip_(register_module("skip", torch::nn::Linear(inputs, outputs))) {}

    torch::Tensor forward(lockstep::nn::Fields const& inputs) override {
        auto const flat = inputs.only().flatten(1);
        return second_(torch::relu(first_(flat))) + skip_(flat);
    }

  private:
    torch::nn::Linear first_;
    torch::nn::Linear second_;
    torch::nn::Linear skip_;
};

std::int64_t size_of(lockstep::nn::Interface const& data) {
    std::int64_t size = 1;
    for (auto const extent : data.sample_shape) {
        size *= extent;
    }
    return size;
}

} // namespace

LOCKSTEP_MODELS(lockstep::nn::ModelKind{
    .name = "skip",
    .meaning = "two layers and a skip",
    .keys = {{"hidden", "32", "width of the hidden layer"}},
    .make =
        [](auto const& values, auto const& data) {
            return std::make_shared<Skip>(size_of(data), values.integer("hidden", 1), data.outputs);
        },
    .parameters =
        [](auto const& values, auto const& data) {
            auto const inputs = static_cast<double>(size_of(data));
            auto const hidden = static_cast<double>(values.integer("hidden", 1));
            auto const outputs = static_cast<double>(data.outputs);
            return (inputs + 1) * (hidden + outputs) + (hidden + 1) * outputs;
        }})
