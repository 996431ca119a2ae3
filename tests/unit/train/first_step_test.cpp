#include "batches/first_step.hpp"
#include "batches/target_scale.hpp"

#include "catch.hpp"

using namespace lockstep;
using namespace lockstep::train;

namespace {

ErrorText told(config::Deck const& deck) {
    return first_step_text({"the loss is not finite", "", ""}, {.inputs = 1, .targets = 1e9}, true,
                           deck);
}

bool says(std::string const& text, std::string const& part) {
    return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("advice on the scale of targets is what the run can follow") {
    config::Deck deck;
    CHECK(says(told(deck).why, "the targets reach 1e+09"));
    CHECK(says(told(deck).next, "Set data.normalise-targets = true"));
    CHECK(says(told(deck).next, "in a federation, let all sites store targets"));
    deck.privacy.noise = 1; // with which this key is refused
    CHECK_FALSE(says(told(deck).next, "normalise-targets"));
    CHECK(says(scale_targets_text(deck), "Store targets that are scaled"));
    deck.data.normalise_targets = true; // targets have no such scale then
    CHECK_FALSE(says(told(deck).why, "targets"));
}
