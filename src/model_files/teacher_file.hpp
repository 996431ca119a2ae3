#pragma once

#include "batches/workload.hpp"
#include "lockstep/checkpoint/verify.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/config/deck.hpp"
#include "lockstep/data/facts.hpp"
#include "task/distilled.hpp"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::train {

/// What a teacher's file is, and what its model is made from.
struct TeacherFile {
    std::optional<checkpoint::VerifiedFile> weights{}; ///< none: the model is a program of PyTorch
    config::Model model{};
    task::Rescaling rescaling{};
    std::optional<data::Facts> facts{}; ///< of what it was trained on; none: not known
    std::vector<std::string> ignored{}; ///< sentences on keys of distill.teacher-deck
};

/// Opens the file of distill.teacher: a trained model of this program, a file of weights, or a
/// program of PyTorch.
///
/// Collective  over `world`
/// Throws      AgreedError 64 for a teacher that does not fit the deck or the samples; 65 or 66 for
///             a damaged or missing file
TeacherFile open_teacher(comm::Communicator const& world, config::Deck const& deck,
                         Workload const& work);

} // namespace lockstep::train
