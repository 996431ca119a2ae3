#pragma once

#include "federate/accountant.hpp"
#include "lockstep/config/deck.hpp"
#include "lockstep/nn/model.hpp"
#include "lockstep/task/task.hpp"

#include <cstdint>
#include <string>

// What a deck with privacy.noise promises, and what would break it.
namespace lockstep::train {

/// A step, as the accountant sees it. The deck is settled.
federate::SampledGaussian private_step(config::Deck const& deck, std::int64_t samples);

/// Epsilon at privacy.delta after `steps` steps.
double epsilon_after(config::Deck const& deck, std::int64_t samples, std::int64_t steps);

/// Steps that privacy.epsilon allows; 0: any number.
///
/// Throws  Error 64 when it does not allow one
std::int64_t private_steps(config::Deck const& deck, std::int64_t samples);

/// The privacy that a run of `steps` steps has, for people.
std::string privacy_text(config::Deck const& deck, std::int64_t samples, std::int64_t steps);

/// Where privacy.noise is set, refuses whatever would let samples influence the weights without
/// clipping, noise or accounting.
///
/// Throws  Error 64 that names it; 69 where the program was built without libsodium
void require_private(config::Deck const& deck);
void require_private(config::Deck const& deck, nn::Model const& model, task::Task const& task);

} // namespace lockstep::train
