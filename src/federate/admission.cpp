#include "federate/admission.hpp"

#include "base/text.hpp"
#include "federate/roster.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>

namespace lockstep::federate {

std::vector<std::string> Admission::accept(std::vector<std::string> const& fingerprints) const {
    if (fingerprints.empty()) {
        return {};
    }
    auto known = federation_.accepted();
    auto removed = federation_.removed();
    auto const cards = federation_.cards();
    std::vector<std::string> lines;
    for (auto const& fingerprint : fingerprints) {
        bool found = false;
        for (auto const& [name, key] : cards) {
            if (fingerprint != "all" && fingerprint != hex_text(key)) {
                continue;
            }
            found = true;
            auto const [place, is_new] = known.emplace(name, key);
            if (!is_new && place->second != key) {
                throw Error(ExitCode::data,
                            {concat("the key of ", name, " is not the key that was accepted"),
                             "another site may be using this name",
                             "Ask the site whether it has made a new key. If it has, the site must "
                             "join under another name"});
            }
            bool const again = fingerprint != "all" && std::erase(removed, name) > 0;
            if (is_new || again) {
                lines.push_back(concat("accepted ", name, ", ", hex_text(key)));
            }
        }
        if (!found) {
            throw Error(ExitCode::no_input,
                        {concat("no site matches --accept ", fingerprint),
                         concat(amount_of(cards.size(), "site"),
                                cards.size() == 1 ? " has joined (see " : " have joined (see ",
                                (federation_.directory() / "sites").string(), ")"),
                         fingerprint == "all" ? "Wait until a site has joined"
                                              : "Compare this fingerprint with the fingerprint "
                                                "that lockstep federate join printed"});
        }
    }
    say_accepted(known, removed);
    return lines;
}

void Admission::say_accepted(std::map<std::string, PublicKey> const& known,
                             std::vector<std::string> const& removed) const {
    if (known == federation_.accepted() && removed == federation_.removed()) {
        return;
    }
    std::vector<std::string> sites;
    for (auto const& [name, key] : known) {
        sites.push_back(concat(name, " ", hex_text(key)));
    }
    Message list(federation_.binding(0, phase::accepted, coordinator_name));
    list.add_text("sites", lines_of(sites));
    if (!removed.empty()) {
        list.add_text("removed", lines_of(removed));
    }
    list.add_text("version", std::to_string(federation_.list_version() + 1));
    federation_.write(list, key_);
    static_cast<void>(federation_.accepted()); // after a kill here, the next command records it
    federation_.record_list(key_);
}

/// Its key stays known: an update of it that the coordinator has listed still counts.
std::vector<std::string> Admission::remove(std::vector<std::string> const& names) const {
    auto const known = federation_.accepted();
    auto removed = federation_.removed();
    std::vector<std::string> lines;
    for (auto const& name : names) {
        if (!known.contains(name)) {
            throw Error(ExitCode::no_input,
                        {concat("--remove ", name), "no accepted site has this name",
                         "Use a name that lockstep federate info lists"});
        }
        if (!contains(removed, name)) {
            removed.push_back(name);
            lines.push_back(concat("removed ", name));
        }
    }
    if (!lines.empty()) {
        std::ranges::sort(removed);
        say_accepted(known, removed);
    }
    return lines;
}

/// The accepted sites without those that were removed.
std::map<std::string, PublicKey> Admission::remaining() const {
    auto sites = federation_.accepted();
    federation_.record_list(key_);
    if (auto const list = federation_.binding(0, phase::accepted, coordinator_name);
        federation_.list_version() > 0 && !federation_.has(list)) {
        throw Error(ExitCode::no_input,
                    {concat(federation_.file(list).string(), " is missing"),
                     concat("version ", federation_.list_version(),
                            " of the list of accepted sites was read before"),
                     "Copy the file back from a backup, or accept the sites again (--accept "
                     "FINGERPRINT)"});
    }
    for (auto const& name : federation_.removed()) {
        sites.erase(name);
    }
    return sites;
}

} // namespace lockstep::federate
