#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/nn/dropout.hpp"
#include "lockstep/nn/recompute.hpp"
#include "nn/advised_model.hpp"
#include "nn/axis_reader.hpp"
#include "nn/sequence_model.hpp"

#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include "../models.hpp"
#include "legendre_memory.hpp"

namespace lockstep::nn {

namespace {

/// What a block is made of.
struct BlockShape {
    std::int64_t width = 0;
    std::int64_t signals = 0; ///< that go into memory
    std::int64_t order = 0;
    std::int64_t hidden = 0;
    double theta = 0;
    bool stepwise = false;
    double dropout = 0;
    std::uint64_t number = 0;
};

/// y = x + W m(U norm(x)), the memories m of a few signals; then y + feed-forward(norm(y)). Each
/// step sees itself and what came before.
class LmuBlockImpl : public torch::nn::Module {
  public:
    LmuBlockImpl(BlockShape const& shape, std::shared_ptr<RandomKey> const& key)
        : memory_(shape.order, shape.theta, shape.stepwise),
          drop_memory_(shape.dropout, 2 * shape.number, key),
          drop_hidden_(shape.dropout, 2 * shape.number + 1, key) {
        memory_norm_ = register_module("memory_norm", norm(shape.width));
        encode_ = register_module("encode", torch::nn::Linear(shape.width, shape.signals));
        register_module("memory", memory_);
        recall_ =
            register_module("recall", torch::nn::Linear(shape.signals * shape.order, shape.width));
        register_module("drop_memory", drop_memory_);
        hidden_norm_ = register_module("hidden_norm", norm(shape.width));
        hidden_ = register_module("hidden", torch::nn::Linear(shape.width, shape.hidden));
        output_ = register_module("output", torch::nn::Linear(shape.hidden, shape.width));
        register_module("drop_hidden", drop_hidden_);
    }

    /// Shape  [n, steps, width], as returned
    torch::Tensor forward(torch::Tensor const& inputs) {
        auto const memories = memory_(encode_(memory_norm_(inputs)));
        auto const recalled = inputs + drop_memory_(recall_(memories));
        auto const hidden = torch::gelu(hidden_(hidden_norm_(recalled)));
        return recalled + drop_hidden_(output_(hidden));
    }

    static torch::nn::LayerNorm norm(std::int64_t width) {
        return torch::nn::LayerNorm(torch::nn::LayerNormOptions({width}));
    }

  private:
    torch::nn::LayerNorm memory_norm_{nullptr};
    torch::nn::Linear encode_{nullptr};
    LegendreMemory memory_;
    torch::nn::Linear recall_{nullptr};
    Dropout drop_memory_;
    torch::nn::LayerNorm hidden_norm_{nullptr};
    torch::nn::Linear hidden_{nullptr};
    torch::nn::Linear output_{nullptr};
    Dropout drop_hidden_;
};
TORCH_MODULE(LmuBlock);

std::int64_t features_of(Interface const& interface) {
    auto const& inputs = interface.inputs;
    bool const recordings =
        inputs.empty() || (inputs.size() == 1 && inputs.front().ragged && !inputs.front().whole);
    if (interface.sample_shape.size() != 1 || !recordings) {
        throw Error(
            ExitCode::data,
            {"model.name = lmu-asr",
             concat("the model needs one input of real values, [frames, features], where each "
                    "sample has its own number of frames",
                    inputs.empty() ? std::string() : concat(", but ", text_of(inputs))),
             "Import recordings (lockstep data import speech, without --raw), or choose another "
             "model"});
    }
    return interface.sample_shape[0];
}

/// A convolution over frames that keeps every `stride`-th, LMU blocks, and scores of the symbols in
/// each frame that is left.
class LmuAsr : public SequenceModel, public AxisReader {
  public:
    LmuAsr(config::OwnValues const& values, Interface const& interface)
        : kernel_(values.integer("kernel", 1)), stride_(values.integer("stride", 1)),
          recompute_(interface.recompute) {
        auto const width = values.integer("width", 1);
        BlockShape shape{width,
                         values.integer("signals", 1),
                         values.integer("order", 1),
                         values.integer("hidden", 1),
                         0,
                         form_is_stepwise(values),
                         values.number("dropout", 0, 0.999),
                         0};
        convolution_ = register_module(
            "convolution",
            torch::nn::Conv1d(torch::nn::Conv1dOptions(features_of(interface), width, kernel_)
                                  .stride(stride_)
                                  .padding(kernel_ / 2)));
        for (auto const theta : values.integers("theta", 1)) {
            shape.theta = static_cast<double>(theta);
            ++shape.number;
            blocks_.push_back(
                register_module(concat("block", shape.number), LmuBlock(shape, random_key())));
        }
        norm_ = register_module("norm", LmuBlockImpl::norm(width));
        output_ = register_module("output", torch::nn::Linear(width, interface.outputs));
    }

    data::SampleAxes axes() const override { return {.places = {0}}; }

    /// Shape  inputs[0] [rows of all samples, features]; returned [n, outputs, frames], of which a
    ///         sample's own are the first `output_lengths`
    torch::Tensor forward(Fields const& inputs) override {
        auto frames = convolution_(inputs[0].padded().transpose(1, 2)).transpose(1, 2);
        frames = torch::gelu(frames);
        for (auto& block : blocks_) {
            frames = recompute_ ? recomputed({[block](torch::Tensor const& given) mutable {
                                                  return block->forward(given);
                                              },
                                              block->parameters(),
                                              {},
                                              random_key()},
                                             frames)
                                : block->forward(frames);
        }
        return output_(norm_(frames)).transpose(1, 2);
    }

    torch::Tensor output_lengths(torch::Tensor const& rows) const override {
        auto const frames = torch::div(rows + 2 * (kernel_ / 2) - kernel_, stride_, "floor") + 1;
        return frames.clamp_min(0).masked_fill(rows.eq(0), 0);
    }

  private:
    static bool form_is_stepwise(config::OwnValues const& values) {
        return values.choice("form", {"parallel", "recurrent"}) == "recurrent";
    }

    std::int64_t kernel_;
    std::int64_t stride_;
    bool recompute_;
    torch::nn::Conv1d convolution_{nullptr};
    std::vector<LmuBlock> blocks_;
    torch::nn::LayerNorm norm_{nullptr};
    torch::nn::Linear output_{nullptr};
};

double lmu_asr_parameters(config::OwnValues const& values, Interface const& interface) {
    auto const number = [&](char const* key) {
        return static_cast<double>(values.integer(key, 1));
    };
    auto const width = number("width");
    auto const signals = number("signals");
    auto const hidden = number("hidden");
    auto const block = 2 * 2 * width + (width + 1) * signals +
                       (signals * number("order") + 1) * width + (width + 1) * hidden +
                       (hidden + 1) * width;
    return (static_cast<double>(features_of(interface)) * number("kernel") + 1) * width +
           static_cast<double>(values.integers("theta", 1).size()) * block + 2 * width +
           (width + 1) * static_cast<double>(interface.outputs);
}

} // namespace

ModelKind lmu_asr_kind() {
    return {"lmu-asr",
            "convolution over frames of features, followed by blocks of Legendre memory and "
            "feed-forward layers",
            {{"width", "144", "features per frame between blocks"},
             {"theta", "8, 16, 24",
              "numbers of frames that the memories of the blocks span; there is one block for each "
              "number"},
             {"signals", "16", "number of signals that each block remembers"},
             {"order", "8", "Legendre coefficients per signal"},
             {"hidden", "288", "width of a block's hidden layer"},
             {"kernel", "5", "kernel size of the convolution, in frames"},
             {"stride", "3", "stride of the convolution, in frames"},
             {"dropout", "0", "dropout probability for the output of each block"},
             {"form", "parallel",
              "how the memory is computed: for all frames at once by Fourier transform (parallel), "
              "or frame by frame (recurrent)"}},
            [](config::OwnValues const& values, Interface const& interface) {
                return std::make_shared<LmuAsr>(values, interface);
            },
            lmu_asr_parameters,
            true};
}

} // namespace lockstep::nn
