#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/nn/decoder.hpp"
#include "nn/advised_model.hpp"
#include "nn/aware_layer.hpp"
#include "nn/axis_reader.hpp"
#include "nn/models/names_elsewhere.hpp"
#include "nn/to_device.hpp"

#include <torch/nn/init.h>
#include <torch/nn/modules/embedding.h>

#include "../models.hpp"
#include "config_elsewhere.hpp"
#include "transformer_block.hpp"

namespace lockstep::nn {

namespace {

/// What a deck and a data set say of a transformer.
struct Plan {
    TransformerForm form;
    bool tokens = false; ///< inputs are numbers of tokens; else rows of real values
    std::int64_t vocabulary = 0;
    std::int64_t row = 0; ///< values of a row
    std::int64_t end_of_text = -1;
    bool per_sample = false; ///< one output per sample; else one per position
    bool causal = false;
    bool tied = false;
    bool separate = false;      ///< positions see their own document alone
    std::int64_t positions = 0; ///< learnt ones; 0: none
    std::int64_t outputs = 0;
    std::int64_t length = 0; ///< of a sample; 0: any
};

[[noreturn]] void refuse(std::string const& what, std::string const& why, std::string const& next) {
    throw Error(ExitCode::usage, {what, why, next});
}

data::FieldInfo input_of(Interface const& interface) {
    if (interface.inputs.empty()) {
        auto const& shape = interface.sample_shape;
        return {.name = "inputs", .shape = {shape.begin(), shape.end()}};
    }
    return interface.inputs.front();
}

Plan plan_of(config::OwnValues const& values, Interface const& interface) {
    Plan plan;
    auto const input = input_of(interface);
    auto const dimensions = input.shape.size() + (input.ragged ? 1 : 0);
    plan.tokens = input.whole;
    if (interface.inputs.size() > 1 || dimensions != (plan.tokens ? 1 : 2)) {
        throw Error(
            ExitCode::data,
            {"model.name = transformer",
             concat("the model needs one input, either [tokens] of whole numbers or [rows, values] "
                    "of real numbers, but ",
                    text_of(interface.inputs)),
             interface.inputs.front().vocabulary > 0 || plan.tokens
                 ? "Import texts (lockstep data import text) and set data.sequence"
                 : advised_model(interface.inputs)});
    }
    plan.form = TransformerForm::of(values);
    plan.form.quantise_aware = interface.quantise_aware;
    plan.vocabulary = values.integer("vocabulary", 0);
    plan.vocabulary = plan.vocabulary == 0 ? input.vocabulary : plan.vocabulary;
    plan.end_of_text = input.end_of_text;
    plan.outputs = interface.outputs;
    plan.per_sample = interface.of_samples;
    if (plan.tokens && plan.vocabulary == 0) {
        refuse("model.vocabulary is not set", "the data files do not state the number of tokens",
               "Set model.vocabulary to the number of tokens");
    }
    if (plan.vocabulary < input.vocabulary) {
        refuse(concat("model.vocabulary = ", plan.vocabulary, " is too small"),
               concat("the vocabulary of the files has ", input.vocabulary, " tokens"),
               "Set model.vocabulary to at least that number");
    }
    plan.row = plan.tokens ? 0 : static_cast<std::int64_t>(input.shape.back());
    auto const attention = values.choice("attention", {"auto", "causal", "full"});
    plan.causal = attention == "auto" ? !plan.per_sample : attention == "causal";
    auto const positions = values.choice("positions", {"rotary", "learnt", "none"});
    auto const limit = values.integer("max-positions", 0);
    plan.length = input.ragged ? 0 : static_cast<std::int64_t>(input.shape.front());
    auto const length = plan.length;
    if (positions == "rotary") {
        plan.form.rotary_base = values.number("rotary-base", 1, 1e12);
        plan.form.rotary_scaling = RotaryScaling::of(values.text("rotary-scaling"));
        if (plan.form.head() % 2 != 0) {
            refuse("model.positions = rotary",
                   concat("model.width / model.heads must be even, but is ", plan.form.head()),
                   "Set another width or number of heads, or model.positions = learnt");
        }
    } else if (positions == "learnt") {
        plan.positions = limit == 0 ? length : limit;
        if (plan.positions < std::max<std::int64_t>(length, 1)) {
            refuse("model.max-positions is too small",
                   length > 0 ? concat("samples have ", length, " positions")
                              : std::string("the number of positions differs between samples"),
                   "Set model.max-positions to the length of the longest sample");
        }
    }
    if (auto const scaling = values.text("rotary-scaling");
        positions != "rotary" && scaling != "none") {
        refuse(concat("model.rotary-scaling = ", scaling),
               concat("it has no effect with model.positions = ", positions),
               "Set model.positions = rotary, or remove model.rotary-scaling");
    }
    plan.tied = values.boolean("tied") && plan.tokens && !plan.per_sample &&
                plan.outputs == plan.vocabulary;
    auto const documents = values.choice("documents", {"separate", "joined"});
    plan.separate =
        documents == "separate" && plan.tokens && plan.end_of_text >= 0 && !input.ragged;
    return plan;
}

/// Tokens, or rows of values, through blocks of attention; scores at each position, or of the mean
/// over a sample's positions.
class Transformer : public Model, public Decoder, public AxisReader {
  public:
    Transformer(config::OwnValues const& values, Interface const& interface)
        : plan_(plan_of(values, interface)) {
        auto const& form = plan_.form;
        if (plan_.tokens) {
            embedding_ =
                register_module("embedding", torch::nn::Embedding(plan_.vocabulary, form.width));
            draw_normal(embedding_->weight);
        } else {
            rows_ = fully_connected(plan_.row, form.width, form.quantise_aware);
            register_module("rows", rows_.ptr());
        }
        if (plan_.positions > 0) {
            positions_ =
                register_module("positions", torch::nn::Embedding(plan_.positions, form.width));
            draw_normal(positions_->weight);
        }
        dropout_ = register_module("dropout", Dropout(form.dropout, 0, random_key()));
        blocks_ = register_module(
            "blocks", TransformerBlocks(form, interface.recompute, random_key(), hidden_link()));
        if (!plan_.tied) {
            output_ =
                fully_connected(torch::nn::LinearOptions(form.width, plan_.outputs).bias(form.bias),
                                form.quantise_aware);
            register_module("output", output_.ptr());
            draw_normal(output_.ptr()->named_parameters()["weight"]);
        }
    }

    data::SampleAxes axes() const override { return {.places = {0}}; }

    torch::Tensor forward(Fields const& inputs) override {
        auto const given = inputs[0].padded();
        auto const lengths = inputs[0].lengths;
        Visible visible{plan_.causal, {}};
        if (lengths.defined()) {
            visible.mask = own_positions(lengths, given);
        } else if (plan_.separate) {
            visible.mask = own_document(given);
        }
        auto const found = blocks_(embedded(given, 0), visible);
        if (!plan_.per_sample) {
            return scores(found).permute({0, 2, 1});
        }
        return scores(mean_of(found, lengths));
    }

    std::vector<WeightSource> other_names(std::string const& parameter) const override {
        return names_elsewhere(parameter);
    }
    std::vector<Contradiction> contradictions(std::filesystem::path const& config) const override {
        TextForm const text{plan_.vocabulary, plan_.outputs, plan_.positions,
                            plan_.per_sample, plan_.tied,    plan_.length};
        return contradictions_with(config, plan_.form, plan_.tokens ? &text : nullptr);
    }

    std::unique_ptr<DecoderState> begin() const override {
        auto state = std::make_unique<State>();
        state->caches.resize(static_cast<std::size_t>(plan_.form.layers));
        return state;
    }
    torch::Tensor next(torch::Tensor const& tokens, DecoderState& state) override {
        auto& own = dynamic_cast<State&>(state);
        auto const seen = own.caches.front().keys.defined() ? own.caches.front().keys.size(2) : 0;
        if (plan_.positions > 0 && seen + tokens.size(1) > plan_.positions) {
            refuse(concat("a text of ", seen + tokens.size(1), " tokens is too long"),
                   concat("the model has embeddings for only ", plan_.positions, " positions"),
                   "Generate fewer tokens");
        }
        auto const found = blocks_(embedded(tokens, seen), Visible{.causal = true}, &own.caches);
        return scores(found.select(1, found.size(1) - 1)).squeeze(0).to(torch::kFloat32);
    }
    std::int64_t context() const override { return plan_.positions; }

  private:
    struct State : DecoderState {
        std::vector<KeyValues> caches;
    };

    torch::Tensor embedded(torch::Tensor const& given, std::int64_t first) {
        auto values = embedding_ ? embedding_(given) : rows_.forward(given);
        if (positions_) {
            auto const places =
                torch::arange(first, first + given.size(1),
                              torch::TensorOptions(torch::kInt64).device(given.device()));
            if (first + given.size(1) > plan_.positions) {
                refuse(concat("a sample of ", given.size(1), " positions is too long"),
                       concat("the model has embeddings for only ", plan_.positions, " positions"),
                       "Set model.max-positions to the length of the longest sample");
            }
            values = values + positions_(places);
        }
        return dropout_(values);
    }

    torch::Tensor scores(torch::Tensor const& values) {
        return plan_.tied ? torch::linear(values, embedding_->weight) : output_.forward(values);
    }

    /// Whether position j lies before i, or is i.
    static torch::Tensor not_after(std::int64_t count, torch::Device device) {
        return torch::ones({count, count}, torch::TensorOptions(torch::kBool).device(device))
            .tril();
    }

    /// The token that ends a document belongs to it.
    torch::Tensor own_document(torch::Tensor const& tokens) const {
        auto const ends = tokens.eq(plan_.end_of_text).to(torch::kInt64);
        auto const number = ends.cumsum(1) - ends;
        auto same = number.unsqueeze(2).eq(number.unsqueeze(1));
        if (plan_.causal) {
            same = same.logical_and(not_after(tokens.size(1), tokens.device()));
        }
        return same.unsqueeze(1);
    }

    /// A sample's own positions; of those behind its end, which count for nothing, all.
    torch::Tensor own_positions(torch::Tensor const& lengths, torch::Tensor const& given) const {
        auto const count = given.size(1);
        auto const places = torch::arange(count, torch::kInt64);
        auto own = places.unsqueeze(0)
                       .lt(lengths.unsqueeze(1))
                       .unsqueeze(1)
                       .expand({lengths.size(0), count, count});
        if (plan_.causal) {
            own = own.logical_and(not_after(count, torch::kCPU));
        }
        own = own.logical_or(torch::eye(count, torch::kBool)); // none sees nothing
        return to_device(own.unsqueeze(1).contiguous(), given.device());
    }

    torch::Tensor mean_of(torch::Tensor const& values, torch::Tensor const& lengths) const {
        if (!lengths.defined()) {
            return values.mean(1);
        }
        auto const places = torch::arange(values.size(1), torch::kInt64);
        auto const own = places.unsqueeze(0).lt(lengths.unsqueeze(1)).unsqueeze(2);
        auto const counts = lengths.clamp_min(1).unsqueeze(1).to(torch::kFloat32);
        return (values * to_device(own, values.device())).sum(1) /
               to_device(counts, values.device());
    }

    Plan plan_;
    torch::nn::Embedding embedding_{nullptr};
    torch::nn::AnyModule rows_;
    torch::nn::Embedding positions_{nullptr};
    Dropout dropout_{nullptr};
    TransformerBlocks blocks_{nullptr};
    torch::nn::AnyModule output_;
};

double transformer_parameters(config::OwnValues const& values, Interface const& interface) {
    auto const plan = plan_of(values, interface);
    auto const width = static_cast<double>(plan.form.width);
    auto const outputs = static_cast<double>(plan.outputs);
    double const inputs = plan.tokens ? static_cast<double>(plan.vocabulary) * width
                                      : (static_cast<double>(plan.row) + 1) * width;
    double const head = plan.tied ? 0 : outputs * (width + (plan.form.bias ? 1 : 0));
    return inputs + static_cast<double>(plan.positions) * width + plan.form.parameters() + head;
}

} // namespace

ModelKind transformer_kind() {
    auto keys = TransformerForm::keys("rms", "swiglu", "false");
    keys.insert(
        keys.end(),
        {{"attention", "auto",
          "causal: a position attends to itself and earlier positions; full: a position "
          "attends to all positions; auto: full if the outputs are of a sample, else causal"},
         {"positions", "rotary", "position encoding: rotary, learnt or none"},
         {"rotary-base", "10000", "base of the rotary angles"},
         {"rotary-scaling", "none",
          "scaling of the rotary angles for long texts: none, linear FACTOR, or llama3 "
          "FACTOR LOW HIGH CONTEXT"},
         {"max-positions", "0", "number of learnt positions; 0: as many as a sample has"},
         {"vocabulary", "0", "number of tokens; 0: the number that the files state"},
         {"tied", "true", "use the weights of the embedding in the output layer, too"},
         {"documents", "separate",
          "separate: attention is limited to positions of the same document; joined: "
          "attention crosses the ends of documents"}});
    return {"transformer",
            "attention blocks over tokens or rows of values: a decoder such as GPT or Llama, or an "
            "encoder",
            keys,
            [](config::OwnValues const& values, Interface const& interface) {
                return std::make_shared<Transformer>(values, interface);
            },
            transformer_parameters,
            true};
}

} // namespace lockstep::nn
