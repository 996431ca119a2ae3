#pragma once

#include "lockstep/task/task.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::task {

/// What a score says of a sample, and whether it is right.
struct Scored {
    float score = 0;
    bool positive = false;
};

/// Measures of how well scores tell the positives from the others, at all thresholds together.
struct Ranking {
    /// Area under the ROC curve: the share of pairs of a positive and a negative in which the
    /// positive has the larger score; a tie counts half. NaN where either is missing.
    double auroc = 0;
    /// Sum over the thresholds of precision times the gain in recall. NaN without positives.
    double average_precision = 0;
};

/// Both, as scikit-learn's roc_auc_score and average_precision_score have them; NaN where a score
/// is NaN.
Ranking ranking_of(std::vector<Scored> samples);

/// Which of both a deck asks for.
struct AskedRankings {
    bool auroc = false;
    bool average_precision = false;

    bool any() const noexcept { return auroc || average_precision; }
};

/// Adds the means over the classes for which they are defined and, of several classes, those of
/// each class. `of_class` returns the samples with the scores of a class. Where no class has a
/// value, the means are those of scores that tell nothing: 0.5 and 0.
void add_rankings(Metrics& metrics, AskedRankings asked, std::vector<std::string> const& classes,
                  std::function<std::vector<Scored>(std::size_t)> const& of_class);

} // namespace lockstep::task
