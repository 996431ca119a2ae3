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
#include <optional>
#include <tuple>
#include <utility>

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

bool is_worse(FoundSample const& a, FoundSample const& b) {
    auto const place = [](FoundSample const& each) {
        auto const loss = each.told.loss;
        bool const finite = std::isfinite(loss);
        return std::tuple(finite, finite ? -loss : 0, each.told.sample);
    };
    return place(a) < place(b);
}

void keep_worst(std::vector<FoundSample>& worst, std::int64_t max) {
    std::ranges::sort(worst, is_worse);
    worst.resize(std::min(worst.size(), static_cast<std::size_t>(max)));
}

/// "2.5 % of the positions are wrong, most of them in slice 7".
std::string mistakes_text(PlaceClasses const& places, std::int64_t slice) {
    auto const counts = places.truth.ge(0);
    auto const wrong = places.truth.ne(places.guess).logical_and(counts).sum().item<std::int64_t>();
    auto const share =
        100.0 * static_cast<double>(wrong) / static_cast<double>(counts.sum().item<std::int64_t>());
    return concat(significant(share, 3), " % of the positions are wrong",
                  slice >= 0 && wrong > 0 ? concat(", most of them in slice ", slice) : "");
}

std::string line_of(nlohmann::json const& record) {
    return concat(record.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace), "\n");
}

/// The records that all ranks have sent, on rank 0.
std::vector<JsonLine> gather_records(comm::Communicator const& comm, std::string const& lines) {
    std::vector<JsonLine> records;
    for (auto const& text : comm::gather_text(comm, lines)) {
        for (auto const& part : split(text, '\n')) {
            if (JsonLine line(std::string{part}); line.is_record()) {
                records.push_back(std::move(line));
            }
        }
    }
    return records;
}

/// Undefined where the sample is no image.
std::optional<Picture> picture_of_sample(FoundSample const& found, torch::Tensor const& batch,
                                         bool channels_last) {
    if (found.places.truth.defined()) {
        if (auto drawn = picture_of_places(batch[0], channels_last, found.places, found.slice)) {
            return drawn;
        }
    }
    auto const drawn = pictures_of(batch, channels_last, 1);
    return drawn.empty() ? std::nullopt : std::optional(drawn.front());
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
            auto const loss = tally.loss_sum / tally.weight;
            worst_.push_back(kind_ == "segmentation"
                                 ? found(first + i, loss, alone, outputs[i])
                                 : FoundSample{{.sample = first + i,
                                                .loss = loss,
                                                .truth = text_of(alone.targets.only(), true),
                                                .prediction = text_of(
                                                    told_of(answer, alone, outputs[i]), false)}});
        }
    }
    keep_worst(worst_, max_);
}

/// A sample that has a class for each place.
FoundSample WorstSamples::found(std::int64_t sample, double loss, task::Tensors const& alone,
                                torch::Tensor const& output) const {
    auto places = classes_of_places(task_, alone, output);
    auto const slice = worst_slice(places);
    FoundSample found{{.sample = sample,
                       .loss = loss,
                       .truth = shares_text(places.truth, names_),
                       .prediction = concat(shares_text(places.guess, names_), " (",
                                            mistakes_text(places, slice), ")")},
                      slice};
    for (auto* const classes : {&places.truth, &places.guess}) {
        auto const shown = slice < 0 ? *classes : classes->select(0, slice);
        *classes = shown.to(torch::kInt32, /*non_blocking=*/false, /*copy=*/true);
    }
    found.places = std::move(places);
    return found;
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

std::vector<FoundSample> WorstSamples::collect(comm::Communicator const& comm,
                                               bool pictures) const {
    std::string lines;
    for (auto const& [told, slice, places] : worst_) {
        lines += line_of({{"sample", told.sample},
                          {"loss", told.loss},
                          {"truth", told.truth},
                          {"prediction", told.prediction},
                          {"slice", slice}});
    }
    std::vector<FoundSample> all;
    for (auto const& line : gather_records(comm, lines)) {
        all.push_back({{.sample = line.whole("sample", 0),
                        .loss = line.number("loss"),
                        .truth = line.text("truth"),
                        .prediction = line.text("prediction")},
                       line.whole("slice", -1)});
    }
    keep_worst(all, max_);
    if (pictures && kind_ == "segmentation") {
        gather_places(comm, all);
    }
    return all;
}

/// Only the places of samples that are told are sent, as the classes of volumes are many.
void WorstSamples::gather_places(comm::Communicator const& comm,
                                 std::vector<FoundSample>& worst) const {
    std::string wanted;
    for (auto const& each : worst) {
        wanted += concat(each.told.sample, " ");
    }
    comm::broadcast_text(comm, wanted);
    auto const numbers = split(wanted, ' ');
    std::string lines;
    for (auto const& [told, slice, places] : worst_) {
        if (places.truth.dim() == 2 &&
            std::ranges::count(numbers, std::to_string(told.sample)) > 0) {
            lines += line_of({{"sample", told.sample},
                              {"truth", text_of_slice(places.truth)},
                              {"guess", text_of_slice(places.guess)}});
        }
    }
    for (auto const& line : gather_records(comm, lines)) {
        auto const sample = line.whole("sample", -1);
        for (auto& each : worst) {
            if (each.told.sample == sample) {
                each.places = {slice_of_text(line.text("truth")),
                               slice_of_text(line.text("guess"))};
            }
        }
    }
}

std::vector<WorstSample> described(std::vector<FoundSample> const& worst, data::Dataset const& data,
                                   DescribeOptions const& options) {
    data::Scratch scratch;
    data::SampleSources sources(data, options.sequence);
    std::vector<WorstSample> all;
    for (auto const& found : worst) {
        auto each = found.told;
        auto const [file, number] = data.place_of(each.sample);
        each.file = file.string();
        each.number_in_file = number;
        each.source = sources.of(each.sample);
        auto const& info = data.inputs().front();
        if (options.pictures && !info.whole && !info.ragged) {
            data::Batch batch;
            batch.indices = {each.sample};
            data.read(batch, scratch);
            std::vector<std::int64_t> shape{1};
            shape.insert(shape.end(), info.shape.begin(), info.shape.end());
            auto const sample = torch::tensor(batch.inputs()).reshape(shape);
            each.picture =
                picture_of_sample(found, as_stored(sample, data.facts()), options.channels_last);
        }
        all.push_back(std::move(each));
    }
    return all;
}

} // namespace lockstep::train
