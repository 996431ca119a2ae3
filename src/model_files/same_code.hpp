#pragma once

#include "checkpoint/record.hpp"
#include "lockstep/checkpoint/verify.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/config/deck.hpp"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace lockstep::train {

/// Hashes of the libraries that keys of a deck name: plug-ins, and libraries of operators.
using CodeHashes = std::map<std::string, std::string>;

/// Collective  over `world`
/// Throws      AgreedError 64 where a rank's library is not rank 0's; 66 for a missing file
CodeHashes same_code_hashes(comm::Communicator const& world, config::Deck const& deck);

void note_code(checkpoint::Record& record, CodeHashes const& code);

/// The keys whose libraries a record has hashes of.
std::set<std::string> keys_of_noted_code(checkpoint::Record const& record);

/// Tells `changed` of each library that is not the one of the record, as the deck names it ("key =
/// value"), and why that is known. Older records, which tell of none, differ in nothing.
void compare_code(
    checkpoint::Record const& record, config::Deck const& deck, CodeHashes const& code,
    std::function<void(std::string const& what, std::string const& why)> const& changed);

/// Compares the libraries that a deck names with those that the model in `file` was trained with.
///
/// Collective  over `world`
/// Throws      AgreedError 64 for another one, unless `force`; as same_code_hashes
/// Returns     what `force` has allowed, a text for each library
std::vector<std::string> require_code_of_file(comm::Communicator const& world,
                                              config::Deck const& deck,
                                              checkpoint::VerifiedFile const& file, bool force);

} // namespace lockstep::train
