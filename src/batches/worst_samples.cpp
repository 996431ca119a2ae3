#include "batches/worst_samples.hpp"

#include "base/json_line.hpp"
#include "base/text.hpp"
#include "batches/pictures.hpp"
#include "comm/collectives.hpp"
#include "data/sample_sources.hpp"
#include "lockstep/base/error.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

namespace lockstep::train {

namespace {

constexpr std::int64_t max_told = 8; ///< values that fit in a line

/// Returns what it was made with.
class Answered : public nn::Model {
  public:
    explicit Answered(torch::Tensor answer) : answer_(std::move(answer)) {}
    torch::Tensor forward(nn::Fields const&) override { return answer_; }

  private:
    torch::Tensor answer_;
};

bool is_worse(WorstSample const& a, WorstSample const& b) {
    auto const place = [](WorstSample const& each) {
        bool const finite = std::isfinite(each.loss);
        return std::tuple(finite, finite ? -each.loss : 0, each.sample);
    };
    return place(a) < place(b);
}

void keep_worst(std::vector<WorstSample>& worst, std::int64_t max) {
    std::ranges::sort(worst, is_worse);
    worst.resize(std::min(worst.size(), static_cast<std::size_t>(max)));
}

} // namespace

WorstSamples::WorstSamples(std::int64_t max, std::string const& kind, task::Task const& task,
                           std::vector<std::string> class_names)
    : max_(max), kind_(kind), task_(task), names_(std::move(class_names)) {
    constexpr std::array kinds{"classification", "language", "multi-label", "regression",
                               "segmentation"};
    if (std::ranges::find(kinds, kind) == kinds.end()) {
        throw Error(ExitCode::usage, {concat("--worst cannot be combined with task.kind = ", kind),
                                      concat("only ", list_text({kinds.begin(), kinds.end()}),
                                             " have a loss of each sample"),
                                      "Remove --worst"});
    }
}

void WorstSamples::add(std::int64_t first, torch::Tensor const& outputs,
                       task::Tensors const& batch) {
    auto const samples = batch.samples();
    if (outputs.dim() == 0 || outputs.size(0) != samples) {
        throw Error(ExitCode::usage,
                    {"--worst needs an output for each sample",
                     concat("the model returns the shape ", nn::sizes_text(outputs.sizes()),
                            " for ", amount_of(samples, "sample")),
                     "Remove --worst, or choose a model that returns [samples, …]"});
    }
    for (std::int64_t i = 0; i < samples; ++i) {
        Answered answer(outputs.narrow(0, i, 1));
        task::Tensors const alone{batch.inputs.sample(i), batch.targets.sample(i)};
        auto const tally = task_.evaluate(answer, alone);
        if (tally.weight > 0) {
            worst_.push_back({.sample = first + i,
                              .loss = tally.loss_sum / tally.weight,
                              .truth = text_of(alone.targets.only(), true),
                              .prediction = text_of(told_of(answer, alone, outputs[i]), false)});
        }
    }
    keep_worst(worst_, max_);
}

/// What the model's outputs for a sample mean: values in the targets' own units.
torch::Tensor WorstSamples::told_of(nn::Model& model, task::Tensors const& alone,
                                    torch::Tensor const& output) const {
    return kind_ == "regression" ? task_.predict(model, alone.inputs).numbers : output;
}

/// A class with its probability, the names of labels, or values.
std::string WorstSamples::text_of(torch::Tensor const& given, bool is_truth) const {
    auto const values = given.to(torch::kCPU, torch::kFloat64).flatten();
    auto const name = [&](std::int64_t c) {
        return c >= 0 && std::cmp_less(c, names_.size()) ? names_[static_cast<std::size_t>(c)]
                                                         : std::to_string(c);
    };
    if (kind_ == "classification" && is_truth) {
        return name(values[0].item<std::int64_t>());
    }
    if (kind_ == "classification") {
        auto const best = values.argmax().item<std::int64_t>();
        return concat(name(best), " (", fixed(torch::softmax(values, 0)[best].item<double>(), 2),
                      ")");
    }
    std::vector<std::string> texts;
    if (kind_ == "multi-label") {
        for (std::int64_t c = 0; c < values.numel(); ++c) {
            if (values[c].item<double>() > (is_truth ? 0.5 : 0)) {
                texts.push_back(name(c));
            }
        }
        return texts.empty() ? "none" : joined(texts, ", ");
    }
    if (kind_ == "regression" && values.numel() <= max_told) {
        for (std::int64_t i = 0; i < values.numel(); ++i) {
            texts.push_back(significant(values[i].item<double>(), 6));
        }
    }
    return joined(texts, ", ");
}

std::vector<WorstSample> WorstSamples::collect(comm::Communicator const& comm) const {
    std::string lines;
    for (auto const& each : worst_) {
        nlohmann::json const line{{"sample", each.sample},
                                  {"loss", each.loss},
                                  {"truth", each.truth},
                                  {"prediction", each.prediction}};
        lines += concat(line.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace), "\n");
    }
    std::vector<WorstSample> all;
    for (auto const& text : comm::gather_text(comm, lines)) {
        for (auto const& part : split(text, '\n')) {
            if (JsonLine const line(std::string{part}); line.is_record()) {
                all.push_back({.sample = line.whole("sample", 0),
                               .loss = line.number("loss"),
                               .truth = line.text("truth"),
                               .prediction = line.text("prediction")});
            }
        }
    }
    keep_worst(all, max_);
    return all;
}

void describe(std::vector<WorstSample>& worst, data::Dataset const& data,
              DescribeOptions const& options) {
    data::Scratch scratch;
    data::SampleSources sources(data, options.sequence);
    for (auto& each : worst) {
        auto const [file, number] = data.place_of(each.sample);
        each.file = file.string();
        each.number_in_file = number;
        each.source = sources.of(each.sample);
        if (!options.pictures) {
            continue;
        }
        auto const& info = data.inputs().front();
        data::Batch batch;
        batch.indices = {each.sample};
        data.read(batch, scratch);
        std::vector<std::int64_t> shape{1};
        shape.insert(shape.end(), info.shape.begin(), info.shape.end());
        auto const drawn = info.whole || info.ragged
                               ? std::vector<Picture>{}
                               : pictures_of(torch::tensor(batch.inputs()).reshape(shape),
                                             options.channels_last, 1);
        if (!drawn.empty()) {
            each.picture = drawn.front();
        }
    }
}

} // namespace lockstep::train
