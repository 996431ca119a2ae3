#include "federate/charter.hpp"

#include "base/json_text.hpp"
#include "base/text.hpp"
#include "config/values.hpp"
#include "lockstep/base/error.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace lockstep::federate {

namespace {

using Json = nlohmann::json; // writes the digits that give the same bits again

constexpr int version = 1;

/// Calls visit(name, field) for each that an option has set, such as --server-rate for server_rate.
template <class SomeCharter, class Visit>
void for_each_option(SomeCharter& charter, Visit const& visit) {
    visit("strategy", charter.strategy);
    visit("server_rate", charter.server_rate);
    visit("server_epsilon", charter.server_epsilon);
    visit("proximal", charter.proximal);
    visit("rounds", charter.rounds);
    visit("min_sites", charter.min_sites);
    visit("threshold", charter.threshold);
    visit("participation", charter.participation);
    visit("range", charter.range);
    visit("clip", charter.clip);
    visit("noise", charter.noise);
    visit("delta", charter.delta);
    visit("budget", charter.budget);
    visit("accountant", charter.accountant);
    visit("expected_sites", charter.expected_sites);
}

/// Calls visit(name, field) for each.
template <class SomeCharter, class Visit>
void for_each_field(SomeCharter& charter, Visit const& visit) {
    visit("id", charter.id);
    visit("deck", charter.deck);
    visit("model", charter.model);
    visit("files", charter.files);
    visit("classes", charter.classes);
    for_each_option(charter, visit);
}

void require(bool holds, std::string const& what, std::string const& why, std::string const& next) {
    if (!holds) {
        throw Error(ExitCode::usage, {what, why, next});
    }
}

} // namespace

std::map<std::string, std::string> Charter::options() const {
    std::map<std::string, std::string> options{{"--secure", config::printed(is_secure())}};
    for_each_option(*this, [&](std::string name, auto const& value) {
        std::ranges::replace(name, '_', '-');
        options[concat("--", name == "budget" ? "epsilon" : name)] = config::printed(value);
    });
    return options;
}

void Charter::require_sound() const {
    require(!is_secure() || threshold >= 2, concat("--threshold ", threshold),
            "a single site could unmask another", "Give at least 2");
    require(min_sites >= threshold, concat("--min-sites ", min_sites),
            concat("to unmask a round, the coordinator needs ", threshold, " sites"),
            concat("Give --min-sites ", threshold, " or more"));
    require(proximal == 0 || strategy == "fedprox", concat("--proximal ", proximal),
            concat("it has no effect with --strategy ", strategy),
            "Add --strategy fedprox, or leave --proximal out");
    require(proximal > 0 || strategy != "fedprox", "--strategy fedprox without --proximal",
            "nothing would pull the weights towards the global model",
            "Add --proximal MU, such as 0.01");
    require(!has_controls() || clip == 0,
            concat("--clip ", clip, " cannot be combined with --strategy scaffold"),
            "a site sends weights and control variates, and --clip would limit the norm of both "
            "together",
            "Leave --clip out, or choose another --strategy");
    require(!is_private() || clip > 0, concat("--noise ", noise, " without --clip"),
            "noise cannot hide changes whose norm has no limit", "Add --clip NORM");
    require(!is_private() || expected_sites > 0,
            concat("--noise ", noise, " without --expected-sites"),
            "dividing by the number of sites that took part would reveal that number",
            "Add --expected-sites N, where N is the number of sites that will join");
    Charter const usual;
    require(is_private() || expected_sites == 0, concat("--expected-sites ", expected_sites),
            "without noise, the mean is over the sites that took part",
            "Add --noise and --clip, or leave --expected-sites out");
    require(is_private() || delta == usual.delta, concat("--delta ", delta),
            "without noise, epsilon is infinite", "Add --noise and --clip, or leave --delta out");
    require(strategy == "fedadam" || server_epsilon == usual.server_epsilon,
            concat("--server-epsilon ", server_epsilon),
            concat("it has no effect with --strategy ", strategy),
            "Add --strategy fedadam, or leave --server-epsilon out");
    require(budget == 0 || is_private(), concat("--epsilon ", budget),
            "without noise, epsilon is infinite", "Add --noise and --clip, or leave --epsilon out");
    require(accountant == "rdp" || is_private(), concat("--accountant ", accountant),
            "without noise, epsilon is infinite",
            "Add --noise and --clip, or leave --accountant out");
}

std::string Charter::text() const {
    Json json{{"format", "lockstep federation"}, {"version", version}};
    for_each_field(*this, [&](char const* name, auto const& value) { json[name] = value; });
    return json.dump(1);
}

Charter Charter::of_text(std::string const& text) {
    auto const broken = [](std::string const& why) {
        return Error(ExitCode::data, {"the federation's charter cannot be read", why,
                                      "Ask the coordinator to send the charter again"});
    };
    try {
        auto const json =
            parsed_json(text, [&](std::string const& why) { throw broken(concat("it ", why)); });
        if (json.at("version").get<int>() != version) {
            throw Error(ExitCode::data,
                        {"the federation's charter cannot be read",
                         concat("its format has version ", json.at("version").dump(),
                                ", but this version of Lockstep reads only version ", version),
                         "Ask the coordinator which version of Lockstep created the federation, "
                         "and use that version"});
        }
        Charter charter;
        for_each_field(charter, [&](char const* name, auto& value) {
            std::string_view const field = name;
            bool const newer = field == "files" || field == "classes" || field == "accountant";
            if (json.contains(name) || !newer) {
                json.at(name).get_to(value);
            }
        });
        if (charter.accountant != "rdp" && charter.accountant != "prv") {
            throw Error(ExitCode::data,
                        {"the federation's charter cannot be read",
                         concat("this version of Lockstep does not know the privacy accountant ",
                                charter.accountant),
                         "Ask the coordinator which version of Lockstep created the federation, "
                         "and use that version"});
        }
        return charter;
    } catch (Json::exception const& failure) {
        throw broken(failure.what());
    }
}

} // namespace lockstep::federate
