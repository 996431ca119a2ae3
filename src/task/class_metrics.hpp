#pragma once

#include "lockstep/task/task.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include "class_counts.hpp"
#include "ranking.hpp"

namespace lockstep::task {

/// The metrics of classes that are measured only where a deck asks for them, and what an evaluation
/// collects for them: after the counts of each class come those of pairs of classes, of labels
/// among the first K scores, and of samples by confidence.
class ClassMetrics {
  public:
    /// Throws  Error 64 for a matrix of too many classes, or a K that is not below their number
    ClassMetrics(Samples const& samples, std::vector<std::string> names, std::int64_t classes);

    /// A task's own metrics, then those that follow from predicted classes and, with `of_scores`,
    /// those that need the scores of each sample.
    static std::vector<MetricKind> with_own(std::vector<MetricKind> own, bool of_scores);

    std::size_t counts() const;
    std::size_t sums() const;
    std::size_t scores() const;

    /// Adds a batch to a tally that holds the counts of each class.
    ///
    /// Shape  logits [n, classes, place…] float32, labels [n, place…] int64; negative: not counted
    void add_predictions(Tally& tally, torch::Tensor const& logits,
                         torch::Tensor const& labels) const;
    /// The same, after `add_predictions`.
    ///
    /// Shape  logits [n, classes] float32, labels [n] int64
    void add_scores(Tally& tally, torch::Tensor const& logits, torch::Tensor const& labels) const;

    void put(Metrics& metrics, Tally const& total) const;
    /// As Task::confusion.
    std::vector<std::int64_t> confusion(Tally const& total) const;
    /// The counts of each class.
    std::vector<ClassScore> of_classes(Tally const& total) const;

  private:
    std::size_t matrix_counts() const;
    void put_calibration(Metrics& metrics, Tally const& total) const;
    void put_rankings(Metrics& metrics, Tally const& total) const;

    std::vector<std::string> names_;
    std::int64_t classes_;
    bool matrix_;
    bool precision_;
    bool recall_;
    bool balanced_accuracy_;
    bool kappa_;
    bool calibration_;
    AskedRankings asked_;
    std::vector<std::int64_t> top_; ///< each K
};

} // namespace lockstep::task
