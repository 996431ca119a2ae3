// Models of a user's whose forward changes what it may not, in every way that C++ has, and one that
// changes a buffer.

#include <torch/nn/modules/linear.h>

#include <lockstep/nn/plugin.hpp>

namespace {

class Writing : public lockstep::nn::Model {
  public:
    Writing(std::string how, std::int64_t inputs, std::int64_t outputs)
        : how_(std::move(how)),
          layer_(register_module("layer", torch::nn::Linear(inputs, outputs))),
          frozen_(register_parameter("frozen", torch::ones({outputs}), false)),
          kept_(register_buffer("kept", torch::ones({outputs}))) {}

    torch::Tensor forward(lockstep::nn::Fields const& inputs) override {
        write();
        return layer_(inputs.only().flatten(1)) * frozen_ * kept_;
    }

  private:
    void write() {
        torch::NoGradGuard const no_grad;
        auto& weight = layer_->weight;
        if (how_ == "clamp") { // which changes no value here
            weight.clamp_(-100, 100);
        } else if (how_ == "data") {
            weight.data().mul_(0.5);
        } else if (how_ == "raw") {
            weight.mutable_data_ptr<float>()[1] += 1;
        } else if (how_ == "frozen") {
            frozen_.mul_(0.75);
        } else if (how_ == "late") {
            calls_ += is_training() ? 1 : 0;
            calls_ > 10 ? weight.mul_(0.5) : weight;
        } else {
            kept_.mul_(1.25);
        }
    }

    std::string how_;
    torch::nn::Linear layer_;
    torch::Tensor frozen_;
    torch::Tensor kept_;
    std::int64_t calls_ = 0;
};

lockstep::nn::ModelKind kind(std::string const& how) {
    return {.name = how,
            .meaning = "a layer that is written",
            .keys = {},
            .make =
                [how](auto const& /*values*/, auto const& data) {
                    return std::make_shared<Writing>(how, data.sample_shape.front(), data.outputs);
                },
            .parameters =
                [](auto const& /*values*/, auto const& data) {
                    return static_cast<double>((data.sample_shape.front() + 2) * data.outputs);
                }};
}

} // namespace

LOCKSTEP_MODELS(kind("clamp"), kind("data"), kind("raw"), kind("frozen"), kind("late"),
                kind("buffer"))
