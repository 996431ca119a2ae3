#pragma once

#include "lockstep/config/deck.hpp"
#include "lockstep/nn/model.hpp"
#include "lockstep/task/task.hpp"

#include <cstdint>
#include <string>

#include "federate/accountant.hpp"

// What a deck with privacy.noise promises, and what would break it.
namespace lockstep::train {

/// A step, as the accountant sees it. The deck is settled.
federate::SampledGaussian private_step(config::Deck const& deck, std::int64_t samples);

/// Epsilon at privacy.delta after so many steps.
double epsilon_after(config::Deck const& deck, std::int64_t samples, std::int64_t steps);

/// Steps that privacy.epsilon allows; 0: any number.
///
/// Throws  Error 64 when it does not allow one
std::int64_t private_steps(config::Deck const& deck, std::int64_t samples);

/// What a run of so many steps comes to, for people.
std::string privacy_text(config::Deck const& deck, std::int64_t samples, std::int64_t steps);

/// Refuses, where privacy.noise is set, what would let samples into the weights in a way that is
/// not clipped, not covered by noise, or not accounted.
///
/// Throws  Error 64 that names it; 69 where the program was built without libsodium
void require_private(config::Deck const& deck);
void require_private(config::Deck const& deck, nn::Model const& model, task::Task const& task);

} // namespace lockstep::train
