#include "confusion.hpp"

#include "lockstep/base/error.hpp"
#include "lockstep/base/text.hpp"

namespace lockstep::task {

Confusion confusion_of(torch::Tensor const& predicted, torch::Tensor const& truth,
                       std::int64_t classes) {
    Confusion confusion(static_cast<std::size_t>(classes * classes), 0);
    auto const guesses = predicted.to(torch::kCPU).contiguous();
    auto const truths = truth.to(torch::kCPU).contiguous();
    auto const* const guess = guesses.const_data_ptr<std::int64_t>();
    auto const* const right = truths.const_data_ptr<std::int64_t>();
    for (std::int64_t i = 0; i < truths.numel(); ++i) {
        if (right[i] < 0 || right[i] >= classes) {
            throw Error(ExitCode::data, {concat("a target of ", right[i]),
                                         concat("there are ", classes, " classes"),
                                         "Correct the data, or name more classes"});
        }
        ++confusion[static_cast<std::size_t>(right[i] * classes + guess[i])];
    }
    return confusion;
}

double ClassScore::f1() const {
    return 2.0 * static_cast<double>(hit) / static_cast<double>(truly + predicted);
}

double ClassScore::intersection_over_union() const {
    return static_cast<double>(hit) / static_cast<double>(truly + predicted - hit);
}

std::vector<ClassScore> scores_of(Confusion const& confusion) {
    std::size_t classes = 0;
    while (classes * classes < confusion.size()) {
        ++classes;
    }
    std::vector<ClassScore> scores(classes);
    for (std::size_t truth = 0; truth < classes; ++truth) {
        for (std::size_t guess = 0; guess < classes; ++guess) {
            auto const count = confusion[truth * classes + guess];
            scores[truth].truly += count;
            scores[guess].predicted += count;
            if (truth == guess) {
                scores[truth].hit = count;
            }
        }
    }
    return scores;
}

double accuracy_of(std::vector<ClassScore> const& scores) {
    std::int64_t total = 0;
    std::int64_t hit = 0;
    for (auto const& score : scores) {
        total += score.truly;
        hit += score.hit;
    }
    return total == 0 ? 0 : static_cast<double>(hit) / static_cast<double>(total);
}

void add_by_class(Metrics& metrics, std::string const& name,
                  std::vector<std::string> const& class_names,
                  std::vector<ClassScore> const& scores, double (ClassScore::*score)() const) {
    double sum = 0;
    int present = 0;
    for (std::size_t c = 0; c < scores.size(); ++c) {
        if (scores[c].present()) {
            auto const value = (scores[c].*score)();
            sum += value;
            ++present;
            metrics[concat(name, ".",
                           c < class_names.size() ? class_names[c] : std::to_string(c))] = value;
        }
    }
    metrics[name] = present == 0 ? 0 : sum / present;
}

} // namespace lockstep::task
