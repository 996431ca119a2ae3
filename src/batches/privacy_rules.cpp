#include "batches/privacy_rules.hpp"

#include "base/text.hpp"
#include "federate/keys.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>

namespace lockstep::train {

namespace {

constexpr double min_noise = 1e-9;

Error refused(std::string const& what, std::string const& why, std::string const& next) {
    return {ExitCode::usage, {concat(what, " cannot be combined with privacy.noise"), why, next}};
}

struct Breach {
    bool is_there;
    char const* what;
    char const* why;
    char const* next;
};

/// A running statistic that training changes: of frozen layers only if they are thawed later.
/// Empty: there is none.
std::string statistic_of(nn::Model const& model, bool of_frozen) {
    for (auto const& item : model.named_modules()) {
        if (!of_frozen && !item.value()->is_training()) {
            continue;
        }
        for (auto const& buffer : item.value()->named_buffers(/*recurse=*/false)) {
            auto const& name = buffer.key();
            if (name == "running_mean" || name == "running_var") {
                return item.key().empty() ? name : concat(item.key(), ".", name);
            }
        }
    }
    return {};
}

} // namespace

federate::SampledGaussian private_step(config::Deck const& deck, std::int64_t samples) {
    auto const of_step = deck.data.batch * deck.run.replicas * deck.optimizer.accumulate;
    return {static_cast<double>(of_step) / static_cast<double>(samples), deck.privacy.noise};
}

double epsilon_after(config::Deck const& deck, std::int64_t samples, std::int64_t steps) {
    return federate::epsilon_of(private_step(deck, samples), steps, deck.privacy.delta,
                                deck.privacy.accountant);
}

std::int64_t private_steps(config::Deck const& deck, std::int64_t samples) {
    auto const& privacy = deck.privacy;
    if (!privacy.is_on() || privacy.epsilon == 0) {
        return 0;
    }
    auto const steps = federate::max_rounds(private_step(deck, samples), privacy.epsilon,
                                            privacy.delta, privacy.accountant);
    if (steps == 0) {
        throw Error(
            ExitCode::usage,
            {concat("privacy.epsilon = ", privacy.epsilon),
             concat("epsilon is already ", epsilon_after(deck, samples, 1), " after one step"),
             "Raise privacy.epsilon or privacy.noise, or draw fewer samples (data.batch)"});
    }
    return steps;
}

std::string privacy_text(config::Deck const& deck, std::int64_t samples, std::int64_t steps) {
    auto const& privacy = deck.privacy;
    auto text = concat("differential privacy: each step draws each of ", count_text(samples),
                       " samples with probability ", private_step(deck, samples).rate,
                       "; epsilon will be ", epsilon_after(deck, samples, steps), " at delta ",
                       privacy.delta, " after ", count_text(steps), " steps");
    if (privacy.delta * static_cast<double>(samples) >= 1) {
        text += "; warning: privacy.delta should be far below 1 / samples";
    }
    return text;
}

void require_private(config::Deck const& deck) {
    if (!deck.privacy.is_on()) {
        return;
    }
    federate::require_cryptography();
    if (deck.privacy.noise < min_noise) {
        throw Error(
            ExitCode::usage,
            {concat("privacy.noise = ", deck.privacy.noise),
             "so little noise does not protect the samples, because epsilon would be practically "
             "infinite",
             "Raise privacy.noise to about 1, or set privacy.noise = 0 to train without noise"});
    }
    auto const& data = deck.data;
    auto const& sums = deck.communication;
    std::initializer_list<Breach> const breaches{
        {data.shuffle != "full", "data.shuffle other than full",
         "epsilon holds only if each step draws its samples independently",
         "Set data.shuffle = full"},
        {!data.sample_weights.empty(), "data.sample-weights",
         "epsilon holds only if all samples are drawn with the same probability",
         "Leave out data.sample-weights"},
        {data.bucket_by_length > 0, "data.bucket-by-length",
         "epsilon holds only if each step draws its samples independently",
         "Set data.bucket-by-length = 0"},
        {deck.optimizer.clip_norm > 0, "optimizer.clip-norm",
         "the update would be scaled by the norm of the whole gradient, measured before noise is "
         "added",
         "Set optimizer.clip-norm = 0: privacy.clip clips each sample's gradient"},
        {deck.precision.compute == "fp16", "precision.compute = fp16",
         "gradients without noise would decide whether a step is skipped",
         "Set precision.compute = bf16 or fp32"},
        {deck.schedule.name == "plateau", "schedule.name = plateau",
         "validation samples would decide the learning rates, and epsilon does not cover them",
         "Choose another schedule.name, such as cosine"},
        {sums.compression != "none", "communication.compression",
         "one sample could change a rounded sum of gradients by more than privacy.clip",
         "Set communication.compression = none"},
        {sums.unused_parameters, "communication.unused-parameters",
         "the choice of the updated parameters would depend on the samples, and the noise would "
         "not hide this choice",
         "Set communication.unused-parameters = false, and remove parameters that the loss does "
         "not depend on"},
        {sums.sync_batch_norm, "communication.sync-batch-norm",
         "batch norm mixes the samples of a batch, so each sample would change the gradients of "
         "the other samples",
         "Use a model with another norm, such as layer norm"},
        {deck.quantise.aware, "quantise.aware",
         "the scales would be calibrated on training samples, without noise",
         "Quantise after training (lockstep checkpoint quantise)"},
    };
    for (auto const& breach : breaches) {
        if (breach.is_there) {
            throw refused(breach.what, breach.why, breach.next);
        }
    }
    if (task::is_played(deck.task)) {
        throw refused(concat("task.kind = ", deck.task.kind),
                      "this task learns from an environment, which has no samples to protect",
                      "Set privacy.noise = 0");
    }
}

void require_private(config::Deck const& deck, nn::Model const& model, task::Task const& task) {
    if (!deck.privacy.is_on()) {
        return;
    }
    if (auto const name = statistic_of(model, deck.optimizer.thaw_epoch > 0); !name.empty()) {
        throw refused(concat("buffer ", name, " of model.name = ", deck.model.name),
                      "batch norm stores means of training samples without noise",
                      "Set model.batch-norm = false, use a model with another norm, such as layer "
                      "norm, or freeze the batch norms for the whole run (optimizer.freeze)");
    }
    if (!task.class_weights().empty()) {
        throw refused("task.class-weights",
                      "weights computed from class counts would reveal single samples, and "
                      "privacy.clip limits the gradients of all samples to the same norm, "
                      "whatever their weights",
                      "Set task.class-weights = none");
    }
}

} // namespace lockstep::train
