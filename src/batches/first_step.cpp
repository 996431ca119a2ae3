#include "first_step.hpp"

#include "base/text.hpp"
#include "batches/target_scale.hpp"

#include <vector>

namespace lockstep::train {

namespace {

constexpr double large = 1e3; // values of this size may be meant, but are seldom learnt well

} // namespace

ErrorText first_step_text(ErrorText const& diverged, Magnitudes const& largest, bool normalised,
                          config::Deck const& deck) {
    std::vector<std::string> found;
    std::vector<std::string> remedies;
    if (largest.inputs > large) {
        found.push_back(concat("the inputs of this step reach ", largest.inputs,
                               normalised ? "" : " (data.train has no mean and std)"));
        remedies.emplace_back(normalised
                                  ? "Check the mean and std of data.train, or scale its inputs"
                                  : "Scale the inputs, or give data.train a mean and std");
    }
    if (largest.targets > large && !deck.data.normalise_targets) {
        found.push_back(concat("the targets reach ", largest.targets));
        remedies.push_back(scale_targets_text(deck));
    }
    if (!deck.model.weights.empty()) {
        found.push_back(concat("the weights are those of ", deck.model.weights));
        remedies.push_back("Check that these weights were trained on such inputs, or name others");
    }
    if (deck.precision.compute == "fp16") {
        found.emplace_back("fp16 ends at 65504");
        remedies.emplace_back("Set precision.compute = bf16 or fp32");
    }
    if (remedies.empty()) {
        remedies.emplace_back("Look for a function of the model or the loss that has no finite "
                              "value there, such as a logarithm or a division");
    }
    return {diverged.what,
            concat("no step has updated the weights yet, so the learning rate "
                   "is not the cause",
                   found.empty() ? "" : "; ", joined(found, ", and ")),
            joined(remedies, ". ")};
}

} // namespace lockstep::train
