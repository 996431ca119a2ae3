#include "federate/report.hpp"

#include "base/text.hpp"
#include "federate/coordinator.hpp"
#include "federate/roster.hpp"
#include "federate/spent.hpp"
#include "lockstep/base/error.hpp"

#include <nlohmann/json.hpp>

namespace lockstep::federate {

namespace {

using Json = nlohmann::json;

/// A file that a site has sent.
struct Sent {
    std::string phase;
    std::uint64_t bytes = 0;
    std::string fault; ///< empty: good
};

constexpr std::array site_phases{phase::announce, phase::shares, phase::update, phase::unmask};

std::vector<Sent> sent_by(Federation const& federation, std::int64_t round,
                          std::string const& site) {
    std::vector<Sent> all;
    for (auto const* const phase : site_phases) {
        auto const bound = federation.binding(round, phase, site);
        if (!federation.has(bound)) {
            continue;
        }
        std::error_code no_size; // of a pipe; reading tells why
        auto const bytes = std::filesystem::file_size(federation.file(bound), no_size);
        Sent sent{phase, no_size ? 0 : bytes, {}};
        try {
            static_cast<void>(federation.read_of_site(round, phase, site));
        } catch (Error const& error) {
            sent.fault = error.text().why;
        }
        all.push_back(std::move(sent));
    }
    return all;
}

/// Empty where the coordinator has not said it.
std::vector<std::string> listed(Federation const& federation, std::int64_t round,
                                std::string const& phase, std::string const& part) {
    return federation.has(federation.binding(round, phase, coordinator_name))
               ? lines_in(federation.read_of_coordinator(round, phase).text(part))
               : std::vector<std::string>{};
}

bool has_begun(Federation const& federation, std::int64_t round) {
    return federation.has(federation.binding(round, phase::plan, coordinator_name));
}

std::string settings_text(Federation const& federation) {
    auto const& charter = federation.charter();
    auto text =
        concat("federation ", charter.id, ", model ", charter.model, "\ncoordinator ",
               hex_text(federation.coordinator()), "\n", amount_of(charter.rounds, "round"), " of ",
               charter.strategy, ", at least ", amount_of(charter.min_sites, "site"), " each\n");
    text += charter.is_secure()
                ? concat("secure aggregation: ", charter.threshold, " sites can unmask the sum\n")
                : std::string("no secure aggregation: the coordinator sees each site's change\n");
    if (charter.is_private()) {
        auto const rounds = spent(federation);
        text += concat("differential privacy of sites: noise ", charter.noise, " x clip ",
                       charter.clip, "; after ", amount_of(rounds.rounds, "round"), ", epsilon is ",
                       rounds.published, " at delta ", charter.delta, " (", rounds.known,
                       " against those who know which sites were drawn), accounted by ",
                       charter.accountant, "\n");
    }
    return text;
}

} // namespace

std::string report(Federation const& federation) {
    auto text = settings_text(federation);
    text += "This is what the directory holds. Whether somebody has put an older state of it back "
            "is not verified: only federate round can tell, with a key and its journal\n";
    auto const accepted = federation.accepted();
    auto const removed = federation.removed();
    for (auto const& [name, key] : federation.cards()) {
        auto const known = accepted.find(name);
        bool const same = known != accepted.end() && known->second == key;
        text += concat("site ", name, " ", hex_text(key),
                       contains(removed, name)   ? " (removed)"
                       : same                    ? ""
                       : known == accepted.end() ? " (not accepted)"
                                                 : " (not the accepted key)",
                       "\n");
    }
    for (std::int64_t round = 1; has_begun(federation, round); ++round) {
        bool const over =
            federation.has(federation.binding(round, phase::result, coordinator_name));
        auto const counted = listed(federation, round, phase::result, "counted");
        text +=
            concat("round ", round, ": ",
                   !over                            ? "under way"
                   : federation.is_abandoned(round) ? federation.counts_in_epsilon(round)
                                                          ? "abandoned after its sum was made"
                                                          : "abandoned"
                   : counted.empty()                ? "over, with noise only"
                                     : concat("over, with the updates of ", joined(counted, ", ")),
                   "\n");
        for (auto const& site : listed(federation, round, phase::plan, "sites")) {
            std::vector<std::string> files;
            for (auto const& sent : sent_by(federation, round, site)) {
                files.push_back(concat(sent.phase, " (", bytes_text(sent.bytes), ")",
                                       sent.fault.empty() ? "" : concat(" refused: ", sent.fault)));
            }
            text += concat("  ", site, " has sent ",
                           files.empty() ? "nothing" : joined(files, ", "), "\n");
        }
    }
    return text;
}

std::string json_report(Federation const& federation) {
    std::string text;
    for (std::int64_t round = 1; has_begun(federation, round); ++round) {
        Json sites = Json::object();
        for (auto const& site : listed(federation, round, phase::plan, "sites")) {
            sites[site] = Json::array();
            for (auto const& sent : sent_by(federation, round, site)) {
                sites[site].push_back(
                    {{"phase", sent.phase}, {"bytes", sent.bytes}, {"refused", sent.fault}});
            }
        }
        bool const over =
            federation.has(federation.binding(round, phase::result, coordinator_name));
        Json line{{"round", round},
                  {"over", over},
                  {"abandoned", over && federation.is_abandoned(round)},
                  {"counted", listed(federation, round, phase::result, "counted")},
                  {"sent", sites}};
        if (auto const epsilon = listed(federation, round, phase::result, "epsilon");
            !epsilon.empty()) {
            auto const both = split(epsilon.front(), ' ');
            line["epsilon"] = std::stod(both.at(0));
            line["epsilon_if_drawn_is_known"] = std::stod(both.at(1));
        }
        text += line.dump() + "\n";
    }
    return text;
}

} // namespace lockstep::federate
