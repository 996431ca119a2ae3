#pragma once

#include "lockstep/task/task.hpp"

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::task {

/// The confusion matrix: whole numbers, whose sum over ranks is exact.
///
/// Shape  [true class, predicted class], row by row
using Confusion = std::vector<std::int64_t>;

/// The matrix of predicted and true classes: int64, both of the same shape.
///
/// Throws  Error 65 for a true class outside 0 to `classes` - 1
Confusion confusion_of(torch::Tensor const& predicted, torch::Tensor const& truth,
                       std::int64_t classes);

/// The counts of one class.
struct ClassScore {
    std::int64_t hit = 0;
    std::int64_t truly = 0;
    std::int64_t predicted = 0;

    bool present() const { return truly + predicted > 0; }
    double f1() const;                      ///< 2 hit / (truly + predicted)
    double intersection_over_union() const; ///< hit / (truly + predicted - hit)
};

std::vector<ClassScore> scores_of(Confusion const& confusion);

/// How many classes are counted separately in training: all, or 1 for all together where there are
/// too many to sum over ranks in every step.
std::size_t counted_classes(std::int64_t classes);

/// The same counts without the matrix.
///
/// Shape   hit, truly, predicted of each counted class
/// Throws  Error 65 for a true class outside 0 to `classes` - 1
torch::Tensor class_counts_of(torch::Tensor const& predicted, torch::Tensor const& truth,
                              std::int64_t classes);
std::vector<ClassScore> scores_of_counts(std::vector<std::int64_t> const& counts);

/// The share of correct predictions.
double accuracy_of(std::vector<ClassScore> const& scores);

/// The mean over the classes that are present.
double mean_score(std::vector<ClassScore> const& scores, double (ClassScore::*score)() const);

/// Adds `name`, the mean over the classes that are present, and `name.CLASS` of each class.
void add_by_class(Metrics& metrics, std::string const& name,
                  std::vector<std::string> const& class_names,
                  std::vector<ClassScore> const& scores, double (ClassScore::*score)() const);

} // namespace lockstep::task
