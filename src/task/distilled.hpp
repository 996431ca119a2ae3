#pragma once

#include "config/hidden_pairs.hpp"
#include "lockstep/config/deck.hpp"
#include "lockstep/nn/model.hpp"
#include "lockstep/task/task.hpp"

#include <memory>
#include <string>
#include <vector>

namespace lockstep::task {

/// What a model's first input becomes for another model that was trained on inputs which were
/// normalised otherwise: factor * x + offset.
///
/// Shape  [1] or [channels]; empty: it stays as it is
struct Rescaling {
    std::vector<double> factor;
    std::vector<double> offset;
    bool channels_last = false; ///< as in data::Facts
};

/// How a task is learnt from a model that was trained before.
struct Lesson {
    config::Distill options;
    /// Equal instances of the teacher in evaluation mode: as many batches can run at once as there
    /// are instances.
    std::vector<std::shared_ptr<nn::Model>> teachers;
    bool of_classes = true; ///< outputs are scores [n, classes, place…]; else real values
    std::vector<config::HiddenPair> hidden{}; ///< layers whose outputs are to become alike
    /// There are no teachers: the last target of each training batch holds a teacher's outputs, of
    /// the shape of the model's. Batches of an evaluation do not have it.
    bool recorded = false;
    Rescaling rescaling{}; ///< for the teachers
};

/// Whether models that learn `kind` can learn it from another model's outputs, as `key` asks for.
///
/// Returns  true where outputs are scores of classes, false for real values
/// Throws   Error 64 for a kind that cannot be learnt from another model's outputs
bool learns_classes(std::string const& kind, std::string const& key = "distill.teacher");

/// How far outputs are from a teacher's: for scores the Kullback-Leibler divergence of softened
/// probabilities, times the square of the temperature so that gradients keep their size (Hinton,
/// Vinyals, Dean, arXiv 1503.02531); for real values the squared error. A mean over all positions
/// of all samples or, of scores, over those that `counted` names.
///
/// Shape   both alike, [n, classes, place…] or [n, value…]; counted as Task::counted; returns a
///         scalar, 0 for no samples
torch::Tensor distance_to(torch::Tensor const& teacher, torch::Tensor const& student,
                          Lesson const& lesson, torch::Tensor const& counted = {});

/// How far a hidden layer's outputs are from a teacher's. Where their shapes are equal, the mean
/// squared error. Where one extent differs, the width, the squared distance between two maps, as a
/// mean over the samples: a sample's map holds, for each index of the other extents, the mean
/// square over the width, and has L2 norm 1 (Zagoruyko, Komodakis, arXiv 1612.03928).
///
/// Shape   [n, extents…] of equal n; returns a scalar, 0 for no samples
/// Throws  Error 64 where more than one extent differs, or no extent is left for a map
torch::Tensor hidden_distance(torch::Tensor const& teacher, torch::Tensor const& student,
                              config::HiddenPair const& pair);

/// Runs both models on `inputs`.
///
/// Throws  Error 64 for a layer that one of them does not have, or two that cannot be compared
void require_hidden(nn::Model& model, nn::Model& teacher, nn::Fields const& inputs,
                    std::vector<config::HiddenPair> const& pairs);

/// `task`, also learnt from a teacher: the training loss becomes (1 - weight) times the task's and
/// weight times `distance_to`; the distances between hidden layers are added. Evaluation is the
/// task's.
std::unique_ptr<Task> distilled(std::unique_ptr<Task> task, Lesson lesson);

} // namespace lockstep::task
