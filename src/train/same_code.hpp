#pragma once

#include "checkpoint/record.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/config/deck.hpp"

#include <functional>
#include <map>
#include <string>

namespace lockstep::train {

/// Hashes of the libraries that keys of a deck name: plug-ins, and libraries of operators.
using CodeHashes = std::map<std::string, std::string>;

/// Collective  over `world`
/// Throws      AgreedError 64 where a rank's library is not rank 0's; 66 for a missing file
CodeHashes same_code_hashes(comm::Communicator const& world, config::Deck const& deck);

void note_code(checkpoint::Record& record, CodeHashes const& code);

/// Tells `changed` of each key whose library is not the one of the record, and why that is known.
/// Older records, which tell of none, differ in nothing.
void compare_code(
    checkpoint::Record const& record, CodeHashes const& code,
    std::function<void(std::string const& key, std::string const& why)> const& changed);

} // namespace lockstep::train
