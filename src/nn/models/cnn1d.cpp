#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/nn/dropout.hpp"
#include "lockstep/nn/recompute.hpp"
#include "nn/advised_model.hpp"
#include "nn/aware_layer.hpp"
#include "nn/axis_reader.hpp"
#include "nn/to_device.hpp"
#include "program/transposed.hpp"

#include <torch/nn/modules/normalization.h>

#include "../models.hpp"

namespace lockstep::nn {

namespace {

/// What the first convolution sees and how far it steps, where a deck does not say: a frame of
/// features is some milliseconds, a value of a recording next to nothing.
struct FirstStep {
    std::int64_t kernel = 0;
    std::int64_t stride = 0;
};
constexpr FirstStep of_features{5, 1};
constexpr FirstStep of_recordings{81, 16};

/// A convolution along time, layer norm of each frame's channels, GELU. What lies behind a sample's
/// own frames is zero before and after, as behind its end: no sample sees how long the others are.
class FrameBlockImpl : public torch::nn::Module {
  public:
    FrameBlockImpl(std::int64_t from, std::int64_t to, FirstStep const& step, bool aware)
        : stride_(step.stride),
          convolution_(convolution(torch::nn::Conv1dOptions(from, to, step.kernel)
                                       .stride(step.stride)
                                       .padding(step.kernel / 2),
                                   aware)) {
        register_module("convolution", convolution_.ptr());
        norm_ = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({to})));
    }

    /// Shape  frames [n, frames, from]; left [n] on their device, as `shorter` gives it, undefined
    ///        where samples are alike; returned [n, fewer frames, to]
    torch::Tensor forward(torch::Tensor const& frames, torch::Tensor const& left) {
        auto const convolved =
            program::transposed(convolution_.forward(program::transposed(frames)));
        auto const found = torch::gelu(norm_(convolved));
        if (!left.defined()) {
            return found; // all are its own
        }
        auto const places = torch::arange(found.size(1), left.options());
        return found * places.unsqueeze(0).lt(left.unsqueeze(1)).unsqueeze(2);
    }

    /// Frames that are left of so many.
    torch::Tensor shorter(torch::Tensor const& lengths) const {
        return lengths.defined() ? torch::div(lengths + stride_ - 1, stride_, "floor") : lengths;
    }

  private:
    std::int64_t stride_;
    torch::nn::AnyModule convolution_;
    torch::nn::LayerNorm norm_{nullptr};
};
TORCH_MODULE(FrameBlock);

/// How the rows of a sample lie: [rows, features], or [rows] of a recording.
struct Rows {
    bool ragged = false;
    bool features = false;
    std::int64_t width = 1; ///< of a row
};

Rows rows_of(Interface const& interface) {
    auto const& inputs = interface.inputs;
    auto const& shape = interface.sample_shape;
    Rows rows{!inputs.empty() && inputs.front().ragged, false, 1};
    auto const dimensions = shape.size() + (rows.ragged ? 1 : 0); // of a sample
    bool const real_values = inputs.empty() || (inputs.size() == 1 && !inputs.front().whole);
    if (!real_values || dimensions < 1 || dimensions > 2) {
        throw Error(ExitCode::data,
                    {"model.name = cnn1d",
                     concat("the model needs one dataset of real values whose samples have the "
                            "shape [rows] or [rows, features], but ",
                            text_of(inputs)),
                     advised_model(inputs)});
    }
    rows.features = dimensions == 2;
    rows.width = rows.features ? shape.back() : 1;
    return rows;
}

FirstStep first_step(config::OwnValues const& values, Rows const& rows) {
    auto const usual = rows.features ? of_features : of_recordings;
    auto const kernel = values.integer("first-kernel", 0);
    auto const stride = values.integer("first-stride", 0);
    return {kernel == 0 ? usual.kernel : kernel, stride == 0 ? usual.stride : stride};
}

/// Blocks of convolution along time, each of which but the first halves the frames; the mean of a
/// sample's own frames that are left; scores of the classes.
class Cnn1d : public Model, public AxisReader {
  public:
    Cnn1d(config::OwnValues const& values, Interface const& interface)
        : features_(rows_of(interface).features), recompute_(interface.recompute),
          dropout_(values.number("dropout", 0, 0.999), 1, random_key()) {
        auto const rows = rows_of(interface);
        FirstStep step = first_step(values, rows);
        auto width = rows.width;
        for (auto const wider : values.integers("channels", 1)) {
            if (step.kernel % 2 == 0) {
                auto const key = concat("model.", blocks_.empty() ? "first-kernel" : "kernel");
                throw Error(ExitCode::usage, {concat(key, " = ", step.kernel),
                                              "the number of rows of a kernel must be odd",
                                              concat("Set ", key, " to an odd number")});
            }
            blocks_.push_back(
                register_module(concat("block", blocks_.size() + 1),
                                FrameBlock(width, wider, step, interface.quantise_aware)));
            width = wider;
            step = {values.integer("kernel", 1), 2};
        }
        register_module("dropout", dropout_);
        output_ = fully_connected(width, interface.outputs, interface.quantise_aware);
        register_module("output", output_.ptr());
    }

    data::SampleAxes axes() const override { return {.places = {0}}; }

    /// Shape  inputs[0] [rows of all samples, features…], or [n, rows, features…]
    torch::Tensor forward(Fields const& inputs) override {
        auto frames = inputs[0].padded();
        if (!features_) {
            frames = frames.unsqueeze(2);
        }
        auto lengths = inputs[0].lengths; // undefined: samples are alike
        int number = 0;
        for (auto& block : blocks_) {
            lengths = block->shorter(lengths);
            auto const own = lengths.defined() ? to_device(lengths, frames.device()) : lengths;
            frames = recompute_ ? recomputed({[block, own](torch::Tensor const& given) mutable {
                                                  return block->forward(given, own);
                                              },
                                              block->parameters(),
                                              {},
                                              random_key()},
                                             frames)
                                : block->forward(frames, own);
            if (hidden_link()->states != nullptr) {
                hidden_link()->states->keep(concat("block", ++number), frames);
            }
        }
        auto const sums = frames.to(torch::kFloat32).sum(1);
        auto const counts =
            lengths.defined()
                ? to_device(lengths.clamp_min(1).unsqueeze(1).to(torch::kFloat32), frames.device())
                : torch::full({1, 1}, static_cast<double>(frames.size(1)), sums.options());
        return output_.forward(dropout_(sums / counts));
    }

  private:
    bool features_;
    bool recompute_;
    std::vector<FrameBlock> blocks_;
    Dropout dropout_;
    torch::nn::AnyModule output_;
};

double cnn1d_parameters(config::OwnValues const& values, Interface const& interface) {
    auto const rows = rows_of(interface);
    auto kernel = static_cast<double>(first_step(values, rows).kernel);
    auto width = static_cast<double>(rows.width);
    double parameters = 0;
    for (auto const next : values.integers("channels", 1)) {
        auto const wider = static_cast<double>(next);
        parameters += (width * kernel + 1) * wider + 2 * wider;
        width = wider;
        kernel = static_cast<double>(values.integer("kernel", 1));
    }
    return parameters + (width + 1) * static_cast<double>(interface.outputs);
}

} // namespace

ModelKind cnn1d_kind() {
    return {"cnn1d",
            "convolutions along time, for samples with any number of rows, such as recordings of "
            "words or features of recordings",
            {{"channels", "64, 64, 96, 128",
              "channels of the blocks; each block except the first halves the number of rows"},
             {"kernel", "3", "kernel size of the convolutions, in rows; must be odd"},
             {"first-kernel", "0",
              "kernel size of the first convolution, in rows; must be odd; 0: 5 for features, 81 "
              "for recordings"},
             {"first-stride", "0",
              "stride of the first convolution, in rows; 0: 1 for features, 16 for recordings"},
             {"dropout", "0", "dropout probability before the output layer"}},
            [](config::OwnValues const& values, Interface const& interface) {
                return std::make_shared<Cnn1d>(values, interface);
            },
            cnn1d_parameters,
            true};
}

} // namespace lockstep::nn
