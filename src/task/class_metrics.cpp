#include "class_metrics.hpp"

#include "base/number.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "ranking.hpp"

namespace lockstep::task {

namespace {

constexpr std::int64_t max_of_matrix = 128; ///< classes
constexpr std::size_t bins = 15;            ///< of confidence, as Guo et al. 2017 have them
constexpr std::string_view top_prefix = "top-";

std::vector<std::int64_t> asked_tops(Samples const& samples, std::int64_t classes) {
    std::vector<std::int64_t> all;
    for (auto const& name : samples.metrics) {
        if (!name.starts_with(top_prefix)) {
            continue;
        }
        all.push_back(number_of<std::int64_t>(name.substr(top_prefix.size())).value_or(0));
        if (all.back() < 1 || all.back() >= classes) {
            throw Error(ExitCode::usage,
                        {concat("metric ", name),
                         concat("there are ", classes,
                                " classes: of all of them, each label is among the first"),
                         concat("Choose a number from 1 to ", classes - 1)});
        }
    }
    return all;
}

/// How many scores are before that of the label, by sample; of equal ones, those of lower classes.
torch::Tensor places_of(torch::Tensor const& logits, torch::Tensor const& labels) {
    auto const column = labels.unsqueeze(1);
    auto const own = logits.gather(1, column);
    auto const before = torch::arange(logits.size(1), labels.options()).unsqueeze(0).lt(column);
    return logits.gt(own).logical_or(logits.eq(own).logical_and(before)).sum(1);
}

} // namespace

ClassMetrics::ClassMetrics(Samples const& samples, std::vector<std::string> names,
                           std::int64_t classes)
    : names_(std::move(names)), classes_(classes), matrix_(samples.ask_for("confusion")),
      precision_(samples.ask_for("precision")), recall_(samples.ask_for("recall")),
      balanced_accuracy_(samples.ask_for("balanced-accuracy")), kappa_(samples.ask_for("kappa")),
      calibration_(samples.ask_for("calibration-error")), asked_{samples.ask_for("auroc"),
                                                                 samples.ask_for(
                                                                     "average-precision")},
      top_(asked_tops(samples, classes)) {
    if (matrix_ && classes > max_of_matrix) {
        throw Error(ExitCode::usage,
                    {"task.metrics names confusion",
                     concat("the confusion matrix of ", count_text(classes), " classes would have ",
                            count_text(classes * classes),
                            " counts in each record; it is for at "
                            "most ",
                            max_of_matrix, " classes"),
                     "Ask for precision and recall instead, which are told of each class"});
    }
}

std::vector<MetricKind> ClassMetrics::with_own(std::vector<MetricKind> own, bool of_scores) {
    own.insert(own.end(), {{"balanced-accuracy", true, true},
                           {"kappa", true, true},
                           {"precision", true, true},
                           {"recall", true, true}});
    if (of_scores) {
        own.insert(own.end(), {{"top-K", true, true},
                               {"auroc", true, true},
                               {"average-precision", true, true},
                               {"calibration-error", false, true}});
    }
    own.push_back({"confusion", true, true, true});
    return own;
}

std::size_t ClassMetrics::matrix_counts() const {
    return matrix_ ? static_cast<std::size_t>(classes_ * classes_) : 0;
}

std::size_t ClassMetrics::counts() const {
    return counts_of_class * static_cast<std::size_t>(classes_) + matrix_counts() + top_.size() +
           (calibration_ ? 2 * bins : 0);
}

std::size_t ClassMetrics::sums() const {
    return calibration_ ? bins : 0;
}

/// The probability of each class, or of the second of two; then the label.
std::size_t ClassMetrics::scores() const {
    return !asked_.any() ? 0 : classes_ == 2 ? 2 : static_cast<std::size_t>(classes_) + 1;
}

void ClassMetrics::add_predictions(Tally& tally, torch::Tensor const& logits,
                                   torch::Tensor const& labels) const {
    if (!matrix_) {
        return;
    }
    auto const pairs = (labels * classes_ + logits.argmax(1)).to(torch::kCPU);
    auto const counted = pairs.masked_select(labels.to(torch::kCPU).ge(0));
    auto const counts = counted.bincount({}, classes_ * classes_);
    auto const* const first = counts.const_data_ptr<std::int64_t>();
    tally.counts.insert(tally.counts.end(), first, first + matrix_counts());
}

void ClassMetrics::add_scores(Tally& tally, torch::Tensor const& given,
                              torch::Tensor const& truth) const {
    if (top_.empty() && !calibration_ && !asked_.any()) {
        return;
    }
    auto const logits = given.to(torch::kCPU);
    auto const labels = truth.to(torch::kCPU);
    if (!top_.empty()) {
        auto const places = places_of(logits, labels);
        for (auto const k : top_) {
            tally.counts.push_back(places.lt(k).sum().item<std::int64_t>());
        }
    }
    auto const shares = torch::softmax(logits, 1);
    if (calibration_) {
        auto const [confidences, guesses] = shares.max(1);
        auto const hits = guesses.eq(labels).contiguous();
        auto const confidence = confidences.contiguous();
        std::vector<std::int64_t> counts(2 * bins, 0); // samples, then hits
        std::vector<double> sums(bins, 0);
        for (std::int64_t i = 0; i < labels.numel(); ++i) {
            double const value = confidence.const_data_ptr<float>()[i];
            auto const place = static_cast<std::int64_t>(std::ceil(value * bins)) - 1;
            auto const bin = static_cast<std::size_t>(std::clamp<std::int64_t>(place, 0, bins - 1));
            ++counts[bin];
            counts[bins + bin] += hits.const_data_ptr<bool>()[i] ? 1 : 0;
            sums[bin] += value;
        }
        tally.counts.insert(tally.counts.end(), counts.begin(), counts.end());
        tally.sums.insert(tally.sums.end(), sums.begin(), sums.end());
    }
    if (asked_.any()) {
        auto const first = classes_ == 2 ? 1 : 0;
        auto const rows =
            torch::cat({shares.slice(1, first, classes_), labels.to(torch::kFloat32).unsqueeze(1)},
                       1)
                .contiguous();
        auto const* const values = rows.const_data_ptr<float>();
        tally.scores.insert(tally.scores.end(), values, values + rows.numel());
    }
}

std::vector<ClassScore> ClassMetrics::of_classes(Tally const& total) const {
    return scores_of(
        std::span(total.counts).first(counts_of_class * static_cast<std::size_t>(classes_)));
}

std::vector<std::int64_t> ClassMetrics::confusion(Tally const& total) const {
    auto const first =
        total.counts.begin() + static_cast<std::ptrdiff_t>(counts_of_class) * classes_;
    return {first, first + static_cast<std::ptrdiff_t>(matrix_counts())};
}

void ClassMetrics::put(Metrics& metrics, Tally const& total) const {
    auto const scores = of_classes(total);
    if (balanced_accuracy_) {
        metrics["balanced-accuracy"] = balanced_accuracy_of(scores);
    }
    if (kappa_) {
        metrics["kappa"] = kappa_of(scores);
    }
    if (precision_) {
        add_by_class(metrics, "precision", names_, scores, &ClassScore::precision);
    }
    if (recall_) {
        add_by_class(metrics, "recall", names_, scores, &ClassScore::recall);
    }
    auto const after = counts_of_class * static_cast<std::size_t>(classes_) + matrix_counts();
    std::int64_t samples = 0;
    for (auto const& score : scores) {
        samples += score.truly;
    }
    for (std::size_t i = 0; i < top_.size(); ++i) {
        metrics[concat(top_prefix, top_[i])] =
            static_cast<double>(total.counts[after + i]) /
            static_cast<double>(std::max<std::int64_t>(samples, 1));
    }
    if (calibration_) {
        put_calibration(metrics, total);
    }
    if (asked_.any()) {
        put_rankings(metrics, total);
    }
}

/// The mean over the bins, weighted by their samples, of the distance between the mean confidence
/// and the share that is right: sum over bins |sum of confidences - hits| / samples.
void ClassMetrics::put_calibration(Metrics& metrics, Tally const& total) const {
    auto const counts = std::span(total.counts).last(2 * bins);
    std::int64_t samples = 0;
    double distance = 0;
    for (std::size_t bin = 0; bin < bins; ++bin) {
        samples += counts[bin];
        distance += std::abs(total.sums[bin] - static_cast<double>(counts[bins + bin]));
    }
    metrics["calibration-error"] =
        distance / static_cast<double>(std::max<std::int64_t>(samples, 1));
}

/// The rankings of each class against all others; with two classes, of the second.
void ClassMetrics::put_rankings(Metrics& metrics, Tally const& total) const {
    auto const width = scores();
    auto const first = static_cast<std::size_t>(classes_) + 1 - width; // class with scores
    std::vector<std::string> names;
    for (auto c = first; std::cmp_less(c, classes_); ++c) {
        names.push_back(c < names_.size() ? names_[c] : std::to_string(c));
    }
    add_rankings(metrics, asked_, names, [&](std::size_t column) {
        std::vector<Scored> scored(total.scores.size() / width);
        for (std::size_t i = 0; i < scored.size(); ++i) {
            auto const* const row = total.scores.data() + i * width;
            scored[i] = {row[column], row[width - 1] == static_cast<float>(first + column)};
        }
        return scored;
    });
}

} // namespace lockstep::task
