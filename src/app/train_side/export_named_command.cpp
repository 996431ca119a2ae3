#include "base/text.hpp"
#include "checkpoint/noted_keys.hpp"
#include "lockstep/base/error.hpp"
#include "model_files/renamed_weights.hpp"

#include <iostream>

#include "../exported_weights.hpp"
#include "commands.hpp"

namespace lockstep::app {

namespace {

std::string model_of(checkpoint::Weights const& weights) {
    if (auto const deck = deck_in(weights.record())) {
        return deck->model.name;
    }
    auto const noted = checkpoint::noted_keys(weights.record(), weights.path());
    if (noted.empty()) {
        throw Error(ExitCode::data,
                    {concat(weights.path().string(), " does not say which model it holds"),
                     "the names that others have for its tensors depend on the model",
                     "Name the checkpoint or best.h5 of the run"});
    }
    return noted.at("model.name");
}

} // namespace

/// Words of `lockstep checkpoint export`, which it has looked at: FILE, OUT, type and names.
ExitCode export_named_command(Invocation const& invocation) {
    auto const& words = invocation.arguments;
    checkpoint::VerifiedFile const file(words.at(0));
    auto weights = checkpoint::open_weights(file);
    auto const model = model_of(*weights);
    auto const package = words.at(3) == "timm" ? nn::Package::timm : nn::Package::torchvision;
    export_weights(words[1], *train::renamed_weights(std::move(weights), model, package),
                   words.at(2));
    std::cout << words[1] << ": the model of " << file.path().string() << ", with the names of "
              << words[3] << "\n";
    return ExitCode::ok;
}

} // namespace lockstep::app
