#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>

namespace lockstep::federate {

/// What a number of a charter may be; all are finite.
struct Limits {
    double min = 0;
    double max = std::numeric_limits<double>::infinity();
};
/// By the name of the field, such as "server_rate".
Limits limits_of(std::string const& field);

/// What a federation was founded on: the same for all, signed by the coordinator, never changed.
struct Charter {
    std::string id;      ///< random, 32 hexadecimal digits
    std::string deck;    ///< the deck that every site trains with, except for its own files
    std::string model;   ///< fingerprint of the weights' names and shapes
    std::string files;   ///< of the deck, as files_of; empty: none, or of an earlier version
    std::string classes; ///< their names, a line each; empty: none, or of an earlier version
    std::string strategy = "fedavg"; ///< fedavg, fedprox, fedadam, scaffold
    double server_rate = 1;          ///< learning rate that the mean change is multiplied by
    double server_epsilon = 1e-3;    ///< fedadam's tau
    double proximal = 0;             ///< fedprox: strength of the pull to the round's first weights
    std::int64_t rounds = 10;
    std::int64_t min_sites = 2;     ///< with fewer, a round is refused
    std::int64_t threshold = 0;     ///< sites that can unmask together; 0: not secure
    double participation = 1;       ///< probability that a site is drawn for a round
    double range = 4;               ///< largest change of a weight in a round; beyond it is clipped
    double clip = 0;                ///< largest norm of a site's change; 0: any
    double noise = 0;               ///< standard deviation of the sum's noise over `clip`
    double delta = 1e-5;            ///< at which epsilon is reported
    double budget = 0;              ///< largest epsilon; 0: any
    std::string accountant = "rdp"; ///< rdp, prv: how epsilon is computed
    std::int64_t expected_sites = 0; ///< with noise: sites that the mean is over

    bool is_secure() const noexcept { return threshold > 0; }
    bool is_private() const noexcept { return noise > 0; }
    bool has_controls() const noexcept { return strategy == "scaffold"; }
    /// Sites that a list of a round needs. With noise, a draw may be of any size: the round ends
    /// by as few as can be summed.
    std::int64_t min_answers() const noexcept {
        return std::max(is_private() ? threshold : min_sites, std::int64_t{1});
    }
    /// Vectors as long as the model in a site's update: the change of its weights, and with
    /// controls that of its control variate.
    std::size_t vectors() const noexcept { return has_controls() ? 2 : 1; }

    /// The options of `federate init` that it was made from, as --name and value.
    std::map<std::string, std::string> options() const;

    /// Throws  Error 64 for a value out of its limits, or values that contradict each other
    void require_sound() const;

    /// Conversion to JSON, and back. Throws Error 65 for a text that is not a charter
    std::string text() const;
    static Charter of_text(std::string const& text);
};

} // namespace lockstep::federate
