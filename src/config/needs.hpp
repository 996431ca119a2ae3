#pragma once

#include "lockstep/config/deck.hpp"

namespace lockstep::config {

/// What a key needs of another one: without it, the key has no effect.
struct Need {
    char const* key;    ///< the other one
    char const* values; ///< of the other one, that do
    bool (*is_met)(Deck const& deck);
};

/// The needs of the deck's keys.
namespace needs {

inline constexpr Need first_weights{"model.weights", "a file",
                                    [](Deck const& d) { return !d.model.weights.empty(); }};
inline constexpr Need adapters{"model.lora-rank", "a number above 0",
                               [](Deck const& d) { return d.model.lora_rank > 0; }};
inline constexpr Need frozen{"optimizer.freeze", "a list of name patterns",
                             [](Deck const& d) { return d.optimizer.freeze != "none"; }};
inline constexpr Need a_teacher{"distill.teacher", "a file",
                                [](Deck const& d) { return !d.distill.teacher.empty(); }};
inline constexpr Need a_teacher_or_outputs{
    "distill.teacher", "a file, or distill.outputs = a file",
    [](Deck const& d) { return !d.distill.teacher.empty() || !d.distill.outputs.empty(); }};
inline constexpr Need hidden_layers{"distill.hidden", "a list of layers", [](Deck const& d) {
                                        return !d.distill.teacher.empty() &&
                                               d.distill.hidden != "none";
                                    }};
inline constexpr Need pruning{"prune.pattern", "unstructured, channels or N:M",
                              [](Deck const& d) { return d.prune.pattern != "none"; }};
inline constexpr Need pruned_channels{"prune.pattern", "channels",
                                      [](Deck const& d) { return d.prune.pattern == "channels"; }};
inline constexpr Need unstructured{"prune.pattern", "unstructured",
                                   [](Deck const& d) { return d.prune.pattern == "unstructured"; }};
inline constexpr Need pruning_by_degrees{
    "prune.pattern", "unstructured or channels", [](Deck const& d) {
        return d.prune.pattern == "unstructured" || d.prune.pattern == "channels";
    }};
inline constexpr Need privacy{"privacy.noise", "a number above 0",
                              [](Deck const& d) { return d.privacy.is_on(); }};
inline constexpr Need sgd{"optimizer.name", "sgd",
                          [](Deck const& d) { return d.optimizer.name == "sgd"; }};
inline constexpr Need lars{"optimizer.name", "lars",
                           [](Deck const& d) { return d.optimizer.name == "lars"; }};
inline constexpr Need sgd_or_lars{"optimizer.name", "sgd or lars", [](Deck const& d) {
                                      return d.optimizer.name == "sgd" ||
                                             d.optimizer.name == "lars";
                                  }};
inline constexpr Need adam{"optimizer.name", "adamw, adam or lamb", [](Deck const& d) {
                               return d.optimizer.name == "adamw" || d.optimizer.name == "adam" ||
                                      d.optimizer.name == "lamb";
                           }};
inline constexpr Need nesterov_momentum{
    "optimizer.momentum", "a number above 0", [](Deck const& d) {
        return d.optimizer.name != "sgd" || d.optimizer.momentum > 0 || !d.optimizer.nesterov;
    }};
inline constexpr Need scaled_rate{
    "optimizer.scale-learning-rate", "linear or sqrt",
    [](Deck const& d) { return d.optimizer.scale_learning_rate != "none"; }};
inline constexpr Need a_warm_up{"schedule.name", "any other than one-cycle",
                                [](Deck const& d) { return d.schedule.name != "one-cycle"; }};
inline constexpr Need a_lowest_rate{
    "schedule.name", "cosine, cosine-restarts, linear, polynomial or plateau", [](Deck const& d) {
        auto const& name = d.schedule.name;
        return name == "cosine" || name == "cosine-restarts" || name == "linear" ||
               name == "polynomial" || name == "plateau";
    }};
inline constexpr Need a_factor{
    "schedule.name", "step, multi-step, exponential or plateau", [](Deck const& d) {
        auto const& name = d.schedule.name;
        return name == "step" || name == "multi-step" || name == "exponential" || name == "plateau";
    }};
inline constexpr Need step_schedule{"schedule.name", "step",
                                    [](Deck const& d) { return d.schedule.name == "step"; }};
inline constexpr Need milestones{"schedule.name", "multi-step",
                                 [](Deck const& d) { return d.schedule.name == "multi-step"; }};
inline constexpr Need polynomial{"schedule.name", "polynomial",
                                 [](Deck const& d) { return d.schedule.name == "polynomial"; }};
inline constexpr Need one_cycle{"schedule.name", "one-cycle",
                                [](Deck const& d) { return d.schedule.name == "one-cycle"; }};
inline constexpr Need restarts{"schedule.name", "cosine-restarts",
                               [](Deck const& d) { return d.schedule.name == "cosine-restarts"; }};
inline constexpr Need plateau{"schedule.name", "plateau",
                              [](Deck const& d) { return d.schedule.name == "plateau"; }};
inline constexpr Need early_stopping{"train.patience", "a number above 0",
                                     [](Deck const& d) { return d.train.patience > 0; }};
inline constexpr Need fp16{"precision.compute", "fp16",
                           [](Deck const& d) { return d.precision.compute == "fp16"; }};
inline constexpr Need powersgd{"communication.compression", "powersgd", [](Deck const& d) {
                                   return d.communication.compression == "powersgd";
                               }};
inline constexpr Need stored_samples{"data.sequence", "0",
                                     [](Deck const& d) { return d.data.sequence == 0; }};
inline constexpr Need sample_weights{"data.sample-weights", "a dataset of weights",
                                     [](Deck const& d) { return !d.data.sample_weights.empty(); }};
inline constexpr Need no_other_metric{
    "checkpoint.best", "nothing, or the same metric", [](Deck const& d) {
        return d.task.metric.empty() || d.checkpoint.best.empty() ||
               d.checkpoint.best == d.task.metric;
    }};
inline constexpr Need tensorboard{"monitor.tensorboard", "true",
                                  [](Deck const& d) { return d.monitor.tensorboard; }};
inline constexpr Need any_algorithms{"run.deterministic", "false",
                                     [](Deck const& d) { return !d.run.deterministic; }};

} // namespace needs

} // namespace lockstep::config
