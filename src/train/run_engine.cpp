#include "run_engine.hpp"

#include "base/text.hpp"
#include "comm/agree.hpp"
#include "device/device.hpp"
#include "lockstep/model_files/load_weights.hpp"
#include "model_files/smaller_model.hpp"
#include "nn/shapes.hpp"
#include "train/graph_rule.hpp"

#include <utility>

namespace lockstep::train {

RunEngine::RunEngine(RunFacts const& facts, Workload& work, std::optional<ChannelPruning> channels,
                     std::string shapes)
    : facts_(facts), work_(work), channels_(std::move(channels)), shapes_(std::move(shapes)) {
    make();
}

void RunEngine::make() {
    auto const& deck = facts_.deck();
    engine_ = std::make_unique<Engine>(
        EngineParts::open({.world = facts_.world,
                           .deck = deck,
                           .model = *work_.model,
                           .task = *work_.task,
                           .device = facts_.device,
                           .another =
                               [this] {
                                   auto model = another_trained_model(facts_.deck(), work_);
                                   if (!shapes_.empty()) {
                                       nn::narrow(*model, shapes_);
                                   }
                                   return model;
                               },
                           .nodes = facts_.nodes,
                           .devices = concurrent_devices(deck.run, facts_.world.size()),
                           .privacy = facts_.privacy,
                           .frozen = work_.frozen,
                           .host_of_rank = facts_.compares ? facts_.topology.host_of_rank
                                                           : std::vector<std::string>{},
                           .graphs = uses_graphs({.deck = deck,
                                                  .ranks = facts_.world.size(),
                                                  .device = facts_.device,
                                                  .work = &work_})}));
    if (!facts_.setup.correction.empty()) {
        comm::agree(facts_.world, "reading the correction of gradients", [&] {
            auto const model = another_model(deck, work_);
            load_weights(*model, checkpoint::VerifiedFile(facts_.setup.correction));
            engine_->set_correction(*model);
        });
    }
}

std::string RunEngine::remove_channels(std::int64_t steps) {
    std::string told;
    auto const scores = engine_->prune_scores();
    auto arrays = engine_->whole_state();
    auto const layout = engine_->layout();
    auto const scale = engine_->loss_scale();
    auto const of_others = engine_->steps_of_others();
    std::shared_ptr<nn::Model> smaller;
    comm::agree(facts_.world, concat("removing channels after step ", steps), [&] {
        auto const removal = channels_->choose(*work_.model, layout, scores, steps);
        if (removal.is_any()) {
            smaller = model_without(removal, *work_.model, another_model(facts_.deck(), work_));
            arrays = arrays_without(removal, layout, Layout::of(*smaller), arrays);
            told = concat("after step ", steps, ", ", removal.text(channels_->whole()));
        }
    });
    if (smaller) {
        engine_.reset(); // nobody reads its shared memory any more: `agree` has made sure of that
        work_.model = std::move(smaller);
        shapes_ = nn::shapes_text(*work_.model);
        make();
        engine_->take_state(arrays);
        engine_->loss_scale() = scale;
        engine_->set_steps_of_others(of_others);
    }
    return told;
}

} // namespace lockstep::train
