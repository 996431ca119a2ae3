#include "batches/freezing_rules.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <initializer_list>

namespace lockstep::train {

namespace {

struct Misfit {
    bool is_there;
    char const* key;
    char const* with;
    char const* why;
    char const* next;
};

bool is_compiled(config::Model const& model) {
    auto const found = model.own.find("compiled");
    return found != model.own.end() && found->second != "none";
}

void require_none(std::initializer_list<Misfit> const& misfits) {
    for (auto const& misfit : misfits) {
        if (misfit.is_there) {
            throw Error(ExitCode::usage,
                        {concat(misfit.key, " cannot be combined with ", misfit.with), misfit.why,
                         misfit.next});
        }
    }
}

} // namespace

void require_can_adapt(config::Deck const& deck) {
    if (deck.model.lora_rank == 0) {
        return;
    }
    require_none({
        {deck.optimizer.freeze != "none", "model.lora-rank", "optimizer.freeze",
         "the model is frozen already: only its adapters are trained",
         "Remove optimizer.freeze. Name parameters to train besides the adapters in "
         "model.lora-train, and the layers that get adapters in model.lora-targets"},
        {deck.prune.pattern != "none", "model.lora-rank", "prune.pattern",
         "adapters are merged into the weights, and would fill those that were removed",
         "Prune the tuned model in a run of its own (model.weights)"},
        {deck.quantise.aware, "model.lora-rank", "quantise.aware",
         "its layers round their weights, but adapters are merged only after training",
         "Quantise the tuned model (lockstep checkpoint quantise)"},
        {is_compiled(deck.model), "model.lora-rank", "model.compiled",
         "a compiled step computes only what it was compiled for, without adapters",
         "Set model.compiled = none"},
        {deck.communication.compression == "powersgd", "model.lora-rank",
         "communication.compression = powersgd",
         "the first gradients of half of each adapter are 0, and the low-rank matrices of such "
         "gradients would stay 0",
         "Set communication.compression to none, fp16 or bf16"},
    });
}

void require_can_freeze(config::Deck const& deck) {
    if (deck.optimizer.freeze == "none") {
        return;
    }
    bool const thaws = deck.optimizer.thaw_epoch > 0;
    require_none({
        {deck.prune.pattern == "channels", "optimizer.freeze", "prune.pattern = channels",
         "channels of frozen layers would be removed, too",
         "Train without optimizer.freeze, or set prune.pattern = unstructured"},
        {is_compiled(deck.model), "optimizer.freeze", "model.compiled",
         "a compiled step computes the gradients of the parameters that it was compiled for",
         "Set model.compiled = none, or call requires_grad_(False) for these parameters before you "
         "export the model"},
        {thaws && deck.prune.pattern != "none", "optimizer.thaw-epoch", "prune.pattern",
         "the shares of weights to remove refer to the parameters that are trained, which would "
         "change",
         "Set optimizer.thaw-epoch = 0, or prune in a run of its own"},
        {thaws && deck.communication.compression == "powersgd", "optimizer.thaw-epoch",
         "communication.compression = powersgd",
         "its low-rank matrices of gradients that were 0 so far would stay 0",
         "Set communication.compression to none, fp16 or bf16"},
    });
}

} // namespace lockstep::train
