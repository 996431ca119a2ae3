#include "train/graph_rule.hpp"

#include "base/inject.hpp"
#include "base/text.hpp"
#include "device/device.hpp"
#include "device/device_graph.hpp"
#include "nn/named_code.hpp"

#include <algorithm>

namespace lockstep::train {

namespace {

std::string why_not_this_deck(config::Deck const& deck, int ranks) {
    if (deck.run.mode == "dp" || !concurrent_devices(deck.run, ranks).empty()) {
        return "replicas that run concurrently cannot use graphs";
    }
    if (deck.communication.sync_batch_norm) {
        return "with communication.sync-batch-norm, layers wait for other replicas within a pass";
    }
    if (deck.privacy.noise > 0) {
        return "with privacy.noise, each pass processes only one sample";
    }
    if (deck.optimizer.thaw_epoch > 0) {
        return "with optimizer.thaw-epoch, steps do not stay the same";
    }
    if (deck.optimizer.update == "sharded-gradients" || deck.optimizer.update == "fully-sharded") {
        return concat("with optimizer.update = ", deck.optimizer.update,
                      ", the memory of a pass comes and goes");
    }
    if (injects_nan()) {
        return "LOCKSTEP_INJECT = nan needs steps that run eagerly";
    }
    return {};
}

/// What only a user can know to do the same work for every batch.
std::string why_not_this_code(config::Deck const& deck) {
    if (auto const code = nn::named_code(deck); !code.empty()) {
        return concat(code.begin()->first, " = ", code.begin()->second,
                      " may compute differently from batch to batch; run.graphs = true records it "
                      "all the same");
    }
    if (auto const& teacher = deck.distill.teacher;
        teacher.ends_with(".pt") || teacher.ends_with(".pt2")) {
        return concat("the teacher comes from the file ", teacher,
                      ", and may compute differently from batch to batch");
    }
    return {};
}

bool has_lengths(task::Samples const& samples) {
    return std::ranges::any_of(samples.inputs, &data::FieldInfo::ragged) ||
           std::ranges::any_of(samples.targets, &data::FieldInfo::ragged);
}

/// Empty: they are.
std::string why_eager(GraphFacts const& facts) {
    if (facts.device.is_cpu()) {
        return "graphs need an accelerator";
    }
    if (auto why = why_not_this_deck(facts.deck, facts.ranks); !why.empty()) {
        return why;
    }
    if (facts.work != nullptr && !facts.work->model->is_replayable()) {
        return concat("model.name = ", facts.deck.model.name,
                      ": a model that comes from a file may compute differently from batch to "
                      "batch");
    }
    if (facts.work != nullptr && has_lengths(facts.work->samples)) {
        return "samples have different lengths";
    }
    if (facts.deck.run.graphs == "auto") {
        if (auto why = why_not_this_code(facts.deck); !why.empty()) {
            return why;
        }
    }
    return make_graph_recorder(facts.device) == nullptr
               ? "this program cannot record graphs on such devices"
               : "";
}

} // namespace

bool uses_graphs(GraphFacts const& facts) {
    return facts.deck.run.graphs != "false" && why_eager(facts).empty();
}

std::string graphs_text(GraphFacts const& facts) {
    bool const is_auto = facts.deck.run.graphs == "auto";
    if (facts.deck.run.graphs == "false" || (is_auto && facts.device.is_cpu())) {
        return {};
    }
    auto const why = why_eager(facts);
    if (why.empty()) {
        return "graphs: yes, one for each shape of a batch";
    }
    return concat(is_auto ? "graphs: no: " : "run.graphs = true has no effect: ", why);
}

} // namespace lockstep::train
