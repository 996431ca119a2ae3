#pragma once

#include "federate/charter.hpp"
#include "lockstep/config/deck.hpp"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::federate {

/// Libraries that keys of a deck name, plug-ins and libraries of operators, as nn::code_files.
using CodeFiles = std::map<std::string, std::vector<std::string>>;

/// Calls take(name, bytes) for each part of a model.file that all sites have in common, though each
/// compiles it for its own processor (model.compiled), as nn::for_records.
using ReadCommon = std::function<void(
    std::string const& file, std::function<void(std::string const&, std::string_view)> const&)>;

/// The files that decide what a deck trains besides its data, model.file, distill.teacher and
/// `code`: for each key a line with the key and the BLAKE2b-256 of all bytes of each file or, with
/// model.compiled, of what `read` finds in model.file.
///
/// Throws  Error 66 where one is missing, 74 where it cannot be read, as `read`
std::string files_of(config::Deck const& deck, CodeFiles const& code, ReadCommon const& read);

/// The keys of these files that a charter knows. One of an earlier version knows fewer, or none.
std::set<std::string> keys_of_files(Charter const& charter);

/// Throws  Error 64 where a file of the deck is another than the one of that key in the charter; 66
///         and 74 as above. Of keys that the charter does not know nothing is compared
void require_same_files(Charter const& charter, config::Deck const& deck, CodeFiles const& code,
                        ReadCommon const& read);

} // namespace lockstep::federate
