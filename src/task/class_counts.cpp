#include "class_counts.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

namespace lockstep::task {

namespace {

constexpr std::int64_t max_counted = 128;

/// Adds to the counts of `counted` classes: of all, or of 1 for all together.
void add_counts(torch::Tensor const& predicted, torch::Tensor const& truth, std::int64_t classes,
                std::size_t counted, std::int64_t* counts) {
    auto const guesses = predicted.to(torch::kCPU).contiguous();
    auto const truths = truth.to(torch::kCPU).contiguous();
    auto const* const guess = guesses.const_data_ptr<std::int64_t>();
    auto const* const right = truths.const_data_ptr<std::int64_t>();
    if (guesses.numel() != truths.numel()) {
        throw Error(ExitCode::usage, {concat("the model returns ", guesses.numel(),
                                             " predictions for ", truths.numel(), " targets"),
                                      "each target needs one prediction",
                                      "Choose a model that returns a score for each class"});
    }
    auto const of_class = [&](std::int64_t which) {
        return counts + (counted == 1 ? 0 : counts_of_class * static_cast<std::size_t>(which));
    };
    for (std::int64_t i = 0; i < truths.numel(); ++i) {
        if (right[i] < 0 || right[i] >= classes) {
            throw Error(ExitCode::data,
                        {concat("a target is class ", right[i]),
                         concat("there are only ", classes, " classes, numbered from 0"),
                         "Correct the targets in the data, or raise the number of classes"});
        }
        if (guess[i] < 0 || guess[i] >= classes) {
            throw Error(ExitCode::usage,
                        {concat("the model predicts class ", guess[i]),
                         concat("there are only ", classes, " classes, numbered from 0"),
                         "Choose a model that returns a score for each class"});
        }
        auto* const of_truth = of_class(right[i]);
        auto* const of_guess = of_class(guess[i]);
        of_truth[0] += guess[i] == right[i] ? 1 : 0;
        ++of_truth[1];
        ++of_guess[2];
    }
}

/// Without a wait for the device.
torch::Tensor counts_on_device(torch::Tensor const& guesses, torch::Tensor const& truths,
                               std::size_t counted) {
    if (counted == 1) {
        return torch::stack({guesses.eq(truths).sum(), torch::full_like(truths, 1).sum(),
                             torch::full_like(guesses, 1).sum()});
    }
    auto const classes = torch::arange(static_cast<std::int64_t>(counted), truths.options());
    auto const predicted = guesses.unsqueeze(1).eq(classes);
    auto const truly = truths.unsqueeze(1).eq(classes);
    return torch::stack({predicted.logical_and(truly).sum(0), truly.sum(0), predicted.sum(0)}, 1)
        .flatten();
}

} // namespace

std::vector<std::int64_t> class_counts_of(torch::Tensor const& predicted,
                                          torch::Tensor const& truth, std::int64_t classes) {
    auto const all = static_cast<std::size_t>(classes);
    std::vector<std::int64_t> counts(counts_of_class * all, 0);
    add_counts(predicted, truth, classes, all, counts.data());
    return counts;
}

std::size_t counted_classes(std::int64_t classes) {
    return classes <= max_counted ? static_cast<std::size_t>(classes) : 1;
}

torch::Tensor training_counts_of(torch::Tensor const& predicted, torch::Tensor const& truth,
                                 std::int64_t classes) {
    auto const counted = counted_classes(classes);
    if (!predicted.is_cpu()) {
        return counts_on_device(predicted.flatten(), truth.flatten(), counted);
    }
    auto counts =
        torch::zeros({static_cast<std::int64_t>(counts_of_class * counted)}, torch::kInt64);
    add_counts(predicted, truth, classes, counted, counts.mutable_data_ptr<std::int64_t>());
    return counts;
}

std::vector<ClassScore> scores_of(std::span<std::int64_t const> counts) {
    std::vector<ClassScore> scores;
    for (std::size_t at = 0; at < counts.size(); at += counts_of_class) {
        scores.push_back({counts[at], counts[at + 1], counts[at + 2]});
    }
    return scores;
}

double ClassScore::f1() const {
    return 2.0 * static_cast<double>(hit) / static_cast<double>(truly + predicted);
}

double ClassScore::intersection_over_union() const {
    return static_cast<double>(hit) / static_cast<double>(truly + predicted - hit);
}

namespace {

double share(std::int64_t part, std::int64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

} // namespace

double ClassScore::precision() const {
    return share(hit, predicted);
}

double ClassScore::recall() const {
    return share(hit, truly);
}

double accuracy_of(std::vector<ClassScore> const& scores) {
    std::int64_t total = 0;
    std::int64_t hit = 0;
    for (auto const& score : scores) {
        total += score.truly;
        hit += score.hit;
    }
    return share(hit, total);
}

double balanced_accuracy_of(std::vector<ClassScore> const& scores) {
    double sum = 0;
    int occurring = 0;
    for (auto const& score : scores) {
        sum += score.recall();
        occurring += score.truly > 0 ? 1 : 0;
    }
    return occurring == 0 ? 0 : sum / occurring;
}

double kappa_of(std::vector<ClassScore> const& scores) {
    double total = 0;
    double by_chance = 0;
    for (auto const& score : scores) {
        total += static_cast<double>(score.truly);
        by_chance += static_cast<double>(score.truly) * static_cast<double>(score.predicted);
    }
    double const expected = total == 0 ? 1 : by_chance / (total * total);
    return expected < 1 ? (accuracy_of(scores) - expected) / (1 - expected) : 0;
}

double mean_score(std::vector<ClassScore> const& scores, double (ClassScore::*score)() const) {
    double sum = 0;
    int present = 0;
    for (auto const& each : scores) {
        if (each.present()) {
            sum += (each.*score)();
            ++present;
        }
    }
    return present == 0 ? 0 : sum / present;
}

void add_by_class(Metrics& metrics, std::string const& name,
                  std::vector<std::string> const& class_names,
                  std::vector<ClassScore> const& scores, double (ClassScore::*score)() const) {
    for (std::size_t c = 0; c < scores.size(); ++c) {
        if (scores[c].present()) {
            metrics[concat(name, ".",
                           c < class_names.size() ? class_names[c] : std::to_string(c))] =
                (scores[c].*score)();
        }
    }
    metrics[name] = mean_score(scores, score);
}

} // namespace lockstep::task
