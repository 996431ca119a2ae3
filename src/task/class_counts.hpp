#pragma once

#include "lockstep/task/task.hpp"

#include <torch/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep::task {

/// How many counts a class has: hit, truly, predicted.
inline constexpr std::size_t counts_of_class = 3;

/// The counts of one class.
struct ClassScore {
    std::int64_t hit = 0;
    std::int64_t truly = 0;
    std::int64_t predicted = 0;

    bool present() const { return truly + predicted > 0; }
    double f1() const;                      ///< 2 hit / (truly + predicted)
    double intersection_over_union() const; ///< hit / (truly + predicted - hit)
    double precision() const;               ///< hit / predicted; 0 where nothing was predicted
    double recall() const;                  ///< hit / truly; 0 where there is none
};

/// The counts of each class, for predicted and true classes: int64, both of the same shape. Whole
/// numbers, whose sum over batches and ranks is exact.
///
/// Shape   hit, truly, predicted of each class
/// Throws  Error 65 for a true class outside 0 to `classes` - 1
std::vector<std::int64_t> class_counts_of(torch::Tensor const& predicted,
                                          torch::Tensor const& truth, std::int64_t classes);

/// How many classes are counted separately in training: all, or 1 for all together where there are
/// too many to sum over ranks in every step.
std::size_t counted_classes(std::int64_t classes);

/// The counts of each counted class, where the predictions are.
///
/// Throws  as `class_counts_of`, on CPUs
torch::Tensor training_counts_of(torch::Tensor const& predicted, torch::Tensor const& truth,
                                 std::int64_t classes);

std::vector<ClassScore> scores_of(std::span<std::int64_t const> counts);

/// The share of correct predictions.
double accuracy_of(std::vector<ClassScore> const& scores);

/// The mean of recall over the classes that occur.
double balanced_accuracy_of(std::vector<ClassScore> const& scores);

/// Cohen's kappa (1960): how far accuracy is above what chance gives, as a share of what is left
/// above it; 0 where chance alone gives all.
double kappa_of(std::vector<ClassScore> const& scores);

/// The mean over the classes that are present.
double mean_score(std::vector<ClassScore> const& scores, double (ClassScore::*score)() const);

/// Adds `name`, the mean over the classes that are present, and `name.CLASS` of each class.
void add_by_class(Metrics& metrics, std::string const& name,
                  std::vector<std::string> const& class_names,
                  std::vector<ClassScore> const& scores, double (ClassScore::*score)() const);

} // namespace lockstep::task
