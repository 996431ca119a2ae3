#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <torch/nn/functional/loss.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tasks.hpp"

namespace lockstep::task {

namespace {

namespace functional = torch::nn::functional;

constexpr std::int64_t not_learnt = -100; // the target of a position that does not count

data::FieldInfo tokens_of(Samples const& samples) {
    auto const fits = [&](data::FieldInfo const& target) {
        return target.whole && !target.ragged && target.shape == samples.inputs.front().shape;
    };
    bool const tokens = samples.inputs.size() == 1 && samples.inputs.front().whole &&
                        !samples.inputs.front().ragged && samples.inputs.front().shape.size() == 1;
    bool const targets = samples.targets.size() == (samples.masked ? 2 : 1);
    if (!tokens || !targets || !std::ranges::all_of(samples.targets, fits)) {
        throw Error(ExitCode::usage,
                    {"task.kind = language",
                     "a sample must be a sequence of tokens, where the target of each token is the "
                     "next token",
                     "Import texts with lockstep data import text, and set data.sequence"});
    }
    return samples.inputs.front();
}

/// The next token. Of a document's last token nothing is learnt, since another text follows it;
/// with a mask as second target, nothing is learnt where it is 0.
class Language : public Task {
  public:
    Language(config::OwnValues const& values, Samples const& samples)
        : token_bytes_(samples.token_bytes), masked_(samples.masked),
          smoothing_(values.number("label-smoothing", 0, 0.999)) {
        auto const tokens = tokens_of(samples);
        vocabulary_ = values.integer("vocabulary", 0);
        vocabulary_ = vocabulary_ == 0 ? tokens.vocabulary : vocabulary_;
        auto const fewest = std::max<std::int64_t>(tokens.vocabulary, 2);
        if (vocabulary_ < fewest) {
            throw Error(
                ExitCode::usage,
                {concat("task.vocabulary = ", vocabulary_),
                 vocabulary_ == 0 ? std::string("the data files do not state the number of tokens")
                 : tokens.vocabulary > vocabulary_
                     ? concat("the vocabulary of the files has ", tokens.vocabulary, " tokens")
                     : "a model of texts needs at least 2 tokens",
                 vocabulary_ == 0 ? std::string("Set task.vocabulary to the number of tokens")
                                  : concat("Set task.vocabulary to at least ", fewest)});
        }
        auto const documents = values.choice("documents", {"separate", "joined"});
        end_ = documents == "separate" ? tokens.end_of_text : -1;
    }

    Loss training_loss(nn::Model& model, Tensors const& batch) const override {
        auto const truth = truth_of(batch);
        auto const options = functional::CrossEntropyFuncOptions()
                                 .reduction(torch::kSum)
                                 .label_smoothing(smoothing_)
                                 .ignore_index(not_learnt);
        return {functional::cross_entropy(logits_of(model, batch), truth.flatten(), options),
                count_of(truth)};
    }

    Tally evaluate(nn::Model& model, Tensors const& batch) const override {
        auto const truth = truth_of(batch).flatten();
        auto const logits = logits_of(model, batch);
        auto const losses = functional::cross_entropy(
            logits, truth,
            functional::CrossEntropyFuncOptions().reduction(torch::kNone).ignore_index(not_learnt));
        auto const right = logits.argmax(1).eq(truth).sum().item<std::int64_t>();
        return {
            losses.sum(torch::kFloat64).item<double>(), count_of(truth), {right, bytes_of(truth)}};
    }

    torch::Tensor counted(Tensors const& batch) const override {
        return all_count() ? torch::Tensor() : truth_of(batch).ne(not_learnt);
    }

    Predicts predicts() const override { return Predicts::nothing; }
    std::int64_t outputs() const override { return vocabulary_; }
    std::size_t counts() const override { return 2; }

    Metrics metrics(Tally const& total) const override {
        Metrics metrics{{"accuracy", static_cast<double>(total.counts[0]) / total.weight},
                        {"perplexity", std::exp(total.loss_sum / total.weight)}};
        if (total.counts[1] > 0) {
            metrics["bits-per-byte"] =
                total.loss_sum / (std::numbers::ln2 * static_cast<double>(total.counts[1]));
        }
        return metrics;
    }

  private:
    bool all_count() const { return end_ < 0 && !masked_; }

    torch::Tensor truth_of(Tensors const& batch) const {
        auto truth = batch.targets.only();
        if (end_ >= 0) {
            truth = truth.masked_fill(batch.inputs.only().eq(end_), not_learnt);
        }
        return masked_ ? truth.masked_fill(batch.targets[1].values.eq(0), not_learnt) : truth;
    }

    double count_of(torch::Tensor const& truth) const {
        return all_count() ? static_cast<double>(truth.numel())
                           : static_cast<double>(truth.ne(not_learnt).sum().item<std::int64_t>());
    }

    /// The number of bytes of the text that the tokens stand for.
    std::int64_t bytes_of(torch::Tensor const& truth) const {
        if (token_bytes_.empty()) {
            return 0;
        }
        auto const own = truth.to(torch::kCPU).contiguous();
        std::int64_t bytes = 0;
        for (auto const token :
             std::span(own.const_data_ptr<std::int64_t>(), static_cast<std::size_t>(own.numel()))) {
            bytes += token < 0 ? 0 : token_bytes_[static_cast<std::size_t>(token)];
        }
        return bytes;
    }

    /// Shape  [samples * positions, vocabulary], in float32 whatever the model computes in
    torch::Tensor logits_of(nn::Model& model, Tensors const& batch) const {
        auto const logits = model.forward(batch.inputs);
        auto const& tokens = batch.inputs.only();
        if (logits.dim() != 3 || logits.size(0) != tokens.size(0) ||
            logits.size(1) != vocabulary_ || logits.size(2) != tokens.size(1)) {
            throw Error(
                ExitCode::usage,
                {"task.kind = language",
                 concat("the model returns the shape ", nn::sizes_text(logits.sizes()),
                        " for tokens of the shape ", nn::sizes_text(tokens.sizes()),
                        " and a vocabulary of ", vocabulary_),
                 "Choose a model that returns [samples, vocabulary, tokens], such as transformer"});
        }
        return logits.permute({0, 2, 1}).reshape({-1, vocabulary_}).to(torch::kFloat32);
    }

    std::vector<std::uint8_t> token_bytes_;
    bool masked_;
    double smoothing_;
    std::int64_t vocabulary_ = 0;
    std::int64_t end_ = -1; ///< the token after a document; -1: documents are not told apart
};

} // namespace

TaskKind language_kind() {
    return {"language",
            "prediction of the next token of a text",
            {{"vocabulary", "0", "number of tokens; 0: the number that the files state"},
             {"documents", "separate",
              "separate: the token after the end of a document is left out of the loss; joined: "
              "this token counts in the loss"},
             {"label-smoothing", "0", "share of the target that is spread over all tokens"}},
            {{"loss", false}, {"perplexity", false}, {"bits-per-byte", false}, {"accuracy"}},
            [](config::OwnValues const& values, Samples const& samples) {
                return std::make_unique<Language>(values, samples);
            },
            nullptr,
            nullptr,
            data::Labels::none};
}

} // namespace lockstep::task
