#include "config/idle_keys.hpp"

#include "base/text.hpp"
#include "config/alternatives.hpp"
#include "config/values.hpp"

#include <algorithm>

namespace lockstep::config {

namespace {

struct Needs {
    char const* key;
    bool is_met;
    char const* chooser; ///< the key that gives it its meaning
    char const* values;  ///< of the chooser, that do
};

std::vector<Needs> needs_of(Deck const& deck) {
    auto const& rule = deck.optimizer.name;
    auto const& schedule = deck.schedule.name;
    bool const adam = rule == "adamw" || rule == "adam" || rule == "lamb";
    char const* const adams = "adamw, adam or lamb";
    bool const scaled = deck.optimizer.scale_learning_rate != "none";
    auto const& metric = deck.task.metric;
    auto const& best = deck.checkpoint.best;
    auto const& pattern = deck.prune.pattern;
    bool const teaches = !deck.distill.teacher.empty();
    bool const learns = teaches || !deck.distill.outputs.empty();
    char const* const teachers = "a file, or distill.outputs = a file";
    bool const prunes = pattern != "none";
    bool const unstructured = pattern == "unstructured";
    bool const channels = pattern == "channels";
    bool const by_degrees = unstructured || channels;
    char const* const patterns = "unstructured, channels or N:M";
    char const* const degrees = "unstructured or channels";
    return {
        {"distill.teacher-deck", teaches, "distill.teacher", "a file"},
        {"distill.temperature", learns, "distill.teacher", teachers},
        {"distill.weight", learns, "distill.teacher", teachers},
        {"distill.hidden", learns, "distill.teacher", "a file"}, // with outputs it is refused
        {"distill.hidden-weight", teaches && deck.distill.hidden != "none", "distill.hidden",
         "a list of layers"},
        {"prune.target", channels, "prune.pattern", "channels"},
        {"prune.multiple", channels, "prune.pattern", "channels"},
        {"prune.sparsity", unstructured, "prune.pattern", "unstructured"},
        {"prune.scope", by_degrees, "prune.pattern", degrees},
        {"prune.end", by_degrees, "prune.pattern", degrees},
        {"prune.every", by_degrees, "prune.pattern", degrees},
        {"prune.score", prunes, "prune.pattern", patterns},
        {"prune.except", prunes, "prune.pattern", patterns},
        {"prune.begin", prunes, "prune.pattern", patterns},
        {"privacy.clip", deck.privacy.is_on(), "privacy.noise", "a number above 0"},
        {"privacy.delta", deck.privacy.is_on(), "privacy.noise", "a number above 0"},
        {"privacy.epsilon", deck.privacy.is_on(), "privacy.noise", "a number above 0"},
        {"privacy.accountant", deck.privacy.is_on(), "privacy.noise", "a number above 0"},
        {"privacy.key", deck.privacy.is_on(), "privacy.noise", "a number above 0"},
        {"optimizer.momentum", rule == "sgd" || rule == "lars", "optimizer.name", "sgd or lars"},
        {"optimizer.nesterov", rule == "sgd", "optimizer.name", "sgd"},
        {"optimizer.nesterov",
         rule != "sgd" || deck.optimizer.momentum > 0 || !deck.optimizer.nesterov,
         "optimizer.momentum", "a number above 0"},
        {"optimizer.betas", adam, "optimizer.name", adams},
        {"optimizer.epsilon", adam, "optimizer.name", adams},
        {"optimizer.trust-coefficient", rule == "lars", "optimizer.name", "lars"},
        {"optimizer.reference-replicas", scaled, "optimizer.scale-learning-rate", "linear or sqrt"},
        {"schedule.minimum", schedule == "cosine", "schedule.name", "cosine"},
        {"schedule.step-epochs", schedule == "step", "schedule.name", "step"},
        {"schedule.factor", schedule == "step", "schedule.name", "step"},
        {"precision.loss-scale", deck.precision.compute == "fp16", "precision.compute", "fp16"},
        {"communication.powersgd-rank", deck.communication.compression == "powersgd",
         "communication.compression", "powersgd"},
        {"data.targets", deck.data.sequence == 0, "data.sequence", "0"},
        {"data.replacement", !deck.data.sample_weights.empty(), "data.sample-weights",
         "a dataset of weights"},
        {"task.metric", metric.empty() || best.empty() || best == metric, "checkpoint.best",
         "nothing, or the same metric"},
        {"monitor.histograms", deck.monitor.tensorboard, "monitor.tensorboard", "true"},
        {"precision.cudnn-benchmark", !deck.run.deterministic, "run.deterministic", "false"},
    };
}

/// The text of a key's default.
std::string default_of(std::string const& key) {
    auto const all = settings(Deck{});
    auto const found = std::ranges::find(all, key, &Setting::key);
    return found == all.end() ? "" : found->value;
}

} // namespace

std::set<std::string> idle_keys(Deck const& deck) {
    std::set<std::string> keys;
    for (auto const& needs : needs_of(deck)) {
        if (!needs.is_met) {
            keys.insert(needs.key);
        }
    }
    return keys;
}

std::vector<std::string> ignored_values(DeckSource const& source, Deck const& deck) {
    auto sentences = source.repeated();
    auto const& values = source.values();
    auto const replaced = replaced_keys(values);
    for (auto const& [key, by] : replaced) {
        auto const& loser = values.at(key);
        auto const& winner = values.at(by);
        sentences.push_back(concat("ignored: ", key, " = ", shown(loser.value), " (", loser.origin,
                                   "), because ", by, " = ", shown(winner.value), " (",
                                   winner.origin, ") replaces it"));
    }
    for (auto const& [key, is_met, chooser, wanted] : needs_of(deck)) {
        auto const written = values.find(key);
        auto const chosen = values.find(chooser);
        bool const told = std::ranges::find(replaced, key, &ReplacedKey::key) != replaced.end();
        if (is_met || told || written == values.end() || written->second.layer == printed_layer) {
            continue;
        }
        // Who chooses again in a deck that takes in another's need not hear of what that one has.
        bool const overridden = chosen != values.end() && chosen->second.origin == command_line &&
                                written->second.value != default_of(key);
        if (chosen == values.end() || written->second.layer >= chosen->second.layer || overridden) {
            sentences.push_back(concat("ignored: ", key, " (", written->second.origin,
                                       ") applies only to ", chooser, " = ", wanted));
        }
    }
    return sentences;
}

} // namespace lockstep::config
