#include "model_files/smaller_model.hpp"

#include "base/text.hpp"
#include "device/place.hpp"
#include "lockstep/base/error.hpp"

#include <map>

namespace lockstep::train {

void require_channels_can_go(config::Deck const& deck, Workload const& work) {
    auto const refuse = [](std::string const& what, std::string const& why,
                           std::string const& next) {
        throw Error(ExitCode::usage,
                    {concat("prune.pattern = channels cannot be combined with ", what), why, next});
    };
    if (work.environment || work.samples.inputs.size() != 1 || work.samples.inputs.front().whole ||
        work.samples.inputs.front().ragged) {
        refuse(concat("model.name = ", deck.model.name),
               "channels can be removed only from models with one input of real values whose shape "
               "is fixed",
               "Choose another model, or set prune.pattern = unstructured");
    }
    if (deck.quantise.aware) {
        refuse("quantise.aware", "channels cannot be removed from layers that are rounded for int8",
               "Remove channels first, then train the smaller model for int8");
    }
    if (deck.communication.compression == "powersgd") {
        refuse(
            "communication.compression = powersgd",
            "the error feedback keeps the shapes that the model had before channels were removed",
            "Set communication.compression to none, fp16 or bf16");
    }
    if (!deck.communication.broadcast_buffers) {
        refuse("communication.broadcast-buffers = false",
               "the running statistics of each replica keep the shapes that the model had before "
               "channels were removed",
               "Set communication.broadcast-buffers = true");
    }
}

std::shared_ptr<nn::Model> model_without(ChannelRemoval const& removal, nn::Model const& model,
                                         std::shared_ptr<nn::Model> fresh) {
    torch::NoGradGuard const no_grad;
    std::map<std::string, torch::Tensor> rests;
    std::map<void const*, torch::Tensor> of_tensor; // that layers share: its first name is known
    auto const add = [&](auto const& items) {
        for (auto const& item : items) {
            auto const& [rest, is_first] =
                of_tensor.try_emplace(item.value().unsafeGetTensorImpl());
            if (is_first) {
                rest->second = removal.rest_of(item.key(), item.value().detach()).clone();
            }
            rests[item.key()] = rest->second;
        }
    };
    add(model.named_parameters());
    add(model.named_buffers());
    auto const take = [&](auto const& items) {
        for (auto const& item : items) {
            replace(item.value(), rests.at(item.key()));
        }
    };
    take(fresh->named_parameters());
    take(fresh->named_buffers());
    return fresh;
}

void require_runs(nn::Model& smaller, std::vector<std::int64_t> const& sample_shape) {
    constexpr std::int64_t samples = 2;
    auto shape = sample_shape;
    shape.insert(shape.begin(), samples);
    try {
        torch::NoGradGuard const no_grad;
        smaller.eval();
        smaller.forward(nn::Fields(torch::zeros(shape)));
    } catch (...) {
        auto const error = current_error();
        if (error.code() != ExitCode::software && error.code() != ExitCode::usage) {
            throw; // memory
        }
        auto const& text = error.text();
        throw Error(
            ExitCode::usage,
            {"prune.pattern = channels cannot be used with this model",
             concat("its forward method fails after channels are removed: ",
                    error.code() == ExitCode::usage ? concat(text.what, ": ", text.why) : text.why),
             "Let the forward method take all sizes from its tensors (flatten(1) instead of "
             "view(-1, 784)), list the layer before the failing line in prune.except, or set "
             "prune.pattern = unstructured"});
    }
}

std::vector<torch::Tensor> arrays_without(ChannelRemoval const& removal, Layout const& before,
                                          Layout const& after,
                                          std::vector<torch::Tensor> const& arrays) {
    std::vector<torch::Tensor> rests;
    for (auto const& array : arrays) {
        auto& rest = rests.emplace_back(torch::zeros({after.size}, array.options()));
        for (std::size_t i = 0; i < before.entries.size(); ++i) {
            auto const& entry = before.entries[i];
            auto const& smaller = after.entries.at(i);
            rest.narrow(0, smaller.first, smaller.count)
                .copy_(removal
                           .rest_of(entry.name,
                                    array.narrow(0, entry.first, entry.count).view(entry.shape))
                           .reshape(-1));
        }
    }
    return rests;
}

} // namespace lockstep::train
