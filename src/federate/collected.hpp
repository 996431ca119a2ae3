#pragma once

#include "federate/federation.hpp"
#include "lockstep/base/error.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace lockstep::federate {

/// The messages of sites in a phase of a round, as far as they have arrived and are valid.
struct Collected {
    std::map<std::string, Message> messages;
    std::vector<std::string> awaited; ///< sites that may still answer
    std::vector<std::string> removed; ///< sites whose messages do not count any more
    std::vector<std::string> refused; ///< sentences

    std::int64_t come() const { return std::ssize(messages); }
    /// Whether fewer than `min` messages can come.
    bool is_hopeless(std::int64_t min) const { return come() + std::ssize(awaited) < min; }
};

/// What is wrong with a message of a site; empty: nothing.
using Check = std::function<std::string(std::string const& site, Message const&)>;

Collected collect(Federation const& federation, std::int64_t round, std::string const& phase,
                  std::vector<std::string> const& sites, Check const& check);

/// The error of a round that needs at least `min` messages in this phase, and has fewer.
Error too_few(Federation const& federation, std::int64_t round, std::string const& phase,
              Collected const& collected, std::int64_t min);

} // namespace lockstep::federate
