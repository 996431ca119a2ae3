#pragma once

#include "lockstep/comm/communicator.hpp"
#include "lockstep/config/deck.hpp"
#include "optimizer/privacy.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace lockstep::train {

/// The file of the key of a deck with privacy.noise; where it names none, the one in `directory`.
std::filesystem::path privacy_key_file(config::Deck const& deck,
                                       std::filesystem::path const& directory);

/// Writes a new key to a file that does not exist.
///
/// Throws  Error 69 as below, 73, 74
void make_privacy_key(std::filesystem::path const& file);

/// The secret in privacy.key, known to all ranks. Rank 0 makes the file where it is missing and the
/// run begins.
///
/// Collective  over `world`
/// Throws      AgreedError 64 for a file that others may read, 65 for one that holds no key, 66
///             where a run resumes without it, 69 where the program was built without libsodium
federate::Secret read_privacy_key(comm::Communicator const& world, config::Deck const& deck,
                                  bool resumes);

/// A fingerprint by which a resumed run detects another key; the key cannot be recovered from it.
std::int64_t fingerprint(federate::Secret const& key);

/// Hashes of the contents that a run's gradients depend on, besides the deck.
struct RunContents {
    std::uint64_t data = 0;
    std::int64_t content = 0;                  ///< of all bytes of the data; 0: not known
    std::uint64_t model = 0;                   ///< of the file of its layers
    std::int64_t teacher = 0;                  ///< 0: none
    std::map<std::string, std::string> code{}; ///< of plug-ins, by key
    std::int64_t initial_weights = 0;          ///< of those that the run began with
};

/// A run's own secret: it differs for another deck or other contents, since two sums with the same
/// noise would reveal it.
federate::Secret secret_of_run(federate::Secret const& key, config::Deck const& deck,
                               RunContents const& contents);

} // namespace lockstep::train
