#include "batches/workload_remarks.hpp"

#include "base/adapter_names.hpp"
#include "base/text.hpp"
#include "batches/target_scale.hpp"
#include "batches/train_plan.hpp"
#include "batches/validation_share.hpp"
#include "batches/workload.hpp"
#include "nn/axis_reader.hpp"
#include "task/remarks.hpp"

#include <algorithm>

namespace lockstep::train {

namespace {

/// Where a step takes more samples than there are.
std::string batch_remark(config::Deck const& deck, data::Dataset const& train) {
    auto const wanted = deck.data.batch * deck.run.replicas * deck.optimizer.accumulate;
    return train.samples() >= wanted || deck.privacy.is_on()
               ? std::string()
               : concat("warning: data.train has only ", count_text(train.samples()),
                        " samples, but a step takes ", count_text(wanted),
                        " (data.batch = ", deck.data.batch,
                        " for each replica and micro-batch), so every step takes "
                        "all samples. Lower data.batch to take more than one step per epoch");
}

std::string frozen_remark(config::Deck const& deck, Workload const& work) {
    if (work.frozen.empty() || deck.model.lora_rank > 0) {
        return {};
    }
    std::int64_t values = 0;
    auto const named = work.model->named_parameters();
    for (auto const& name : work.frozen) {
        values += named[name].numel();
    }
    auto const until = deck.optimizer.thaw_epoch;
    return concat(count_text(values, "parameter"), " in ", amount_of(work.frozen.size(), "tensor"),
                  " stay as they are (optimizer.freeze)",
                  until > 0 ? concat(" for the first ",
                                     until == 1 ? std::string("epoch") : concat(until, " epochs"))
                            : "");
}

std::string adapters_remark(config::Deck const& deck, nn::Model const& model) {
    if (deck.model.lora_rank == 0) {
        return {};
    }
    std::int64_t all = 0;
    std::int64_t trained = 0;
    std::size_t adapters = 0;
    for (auto const& item : model.named_parameters()) {
        all += item.value().numel();
        trained += item.value().requires_grad() ? item.value().numel() : 0;
        adapters += is_of_adapter(item.key()) ? 1 : 0;
    }
    return concat("LoRA: adapters of rank ", deck.model.lora_rank, " on ",
                  amount_of(adapters / 2, "layer"), "; ", count_text(trained), " of ",
                  count_text(all, "parameter"), " are trained");
}

/// Where the weight of a layer cannot have the rank of its adapter.
std::string rank_remark(config::Model const& chosen, nn::Model const& model) {
    constexpr std::size_t shown = 4;
    std::vector<std::string> layers;
    auto const parameters = model.named_parameters();
    for (auto const& item : parameters) {
        if (!item.key().ends_with(adapter_a)) {
            continue;
        }
        auto const layer = item.key().substr(0, item.key().size() - adapter_a.size());
        auto const& b = parameters[concat(layer, adapter_b)];
        auto const highest = std::min(item.value().size(1), b.size(0));
        if (chosen.lora_rank > highest) {
            layers.push_back(concat(layer.substr(0, layer.size() - 1), " (", highest, ")"));
        }
    }
    if (layers.empty()) {
        return {};
    }
    auto const more = layers.size() > shown ? layers.size() - shown : 0;
    layers.resize(layers.size() - more);
    return concat("warning: model.lora-rank = ", chosen.lora_rank,
                  " is above the highest rank that the weights of some layers can have: ",
                  joined(layers, ", "), more > 0 ? concat(" and ", more, " more") : "",
                  ". Their adapters have more parameters than they need. Lower the rank, or leave "
                  "these layers out of model.lora-targets");
}

/// The numbers of classes are no real values.
std::string classes_remark(config::Deck const& deck, data::Dataset const& train) {
    auto const classes = train.class_names().size();
    return deck.task.kind == "regression" && classes > 0
               ? concat("warning: the targets of data.train are the numbers of its ",
                        std::to_string(classes),
                        " classes, and not values. If it comes from a table of values, import it "
                        "again with "
                        "lockstep data import series --target COLUMN --regression")
               : "";
}

std::string untrained_remark(config::Model const& model) {
    bool const begins_untrained =
        model.lora_rank > 0 && model.weights.empty() && model.own.count("file") == 0;
    return begins_untrained
               ? concat("warning: model.lora-rank = ", model.lora_rank,
                        " leaves the model's weights as they were drawn from run.seed, because "
                        "model.weights names no file")
               : "";
}

} // namespace

std::vector<std::string> workload_remarks(config::Deck const& deck, Workload const& work) {
    std::vector<std::string> remarks{
        work.model->remark(), frozen_remark(deck, work), adapters_remark(deck, *work.model),
        rank_remark(deck.model, *work.model), untrained_remark(deck.model)};
    auto const* const reader = dynamic_cast<nn::AxisReader const*>(work.model.get());
    auto const axis = work.train ? data::axis_of_means(work.facts) : std::nullopt;
    if (reader != nullptr && axis && remarks.front().empty()) {
        remarks.front() = reader->remark_on(*axis);
    }
    if (auto const* task = dynamic_cast<task::Remarks const*>(work.task.get())) {
        remarks.push_back(task->remark(deck.data, *work.model));
    }
    if (work.train) {
        remarks.push_back(batch_remark(deck, *work.train));
        remarks.push_back(augmentation_remark(deck, work));
        remarks.push_back(classes_remark(deck, *work.train));
        remarks.push_back(work.target_moments && !deck.data.normalise_targets
                              ? target_scale_remark(deck, *work.train, *work.target_moments)
                              : "");
    }
    auto const of_share = share_remarks(deck, work);
    remarks.insert(remarks.end(), of_share.begin(), of_share.end());
    std::erase(remarks, "");
    return remarks;
}

} // namespace lockstep::train
