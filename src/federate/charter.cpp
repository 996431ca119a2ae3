#include "federate/charter.hpp"

#include "base/json_text.hpp"
#include "base/text.hpp"
#include "config/values.hpp"
#include "federate/accountant.hpp"
#include "lockstep/base/error.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string_view>
#include <type_traits>
#include <vector>

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

std::string option_of(std::string name) {
    std::ranges::replace(name, '_', '-');
    return concat("--", name == "budget" ? "epsilon" : name);
}

template <class Number>
void require_within(std::string const& name, Number value) {
    auto const [min, max] = limits_of(name);
    auto const number = static_cast<double>(value);
    if (!std::isfinite(number) || number < min || number > max) {
        throw Error(ExitCode::usage,
                    {concat(option_of(name), " ", value),
                     concat("expected a number ", max < std::numeric_limits<double>::infinity()
                                                      ? concat("from ", min, " to ", max)
                                                      : concat("of at least ", min)),
                     "Give such a number"});
    }
}

void require_one_of(std::string const& name, std::string const& value,
                    std::initializer_list<std::string_view> values) {
    if (std::ranges::find(values, value) == values.end()) {
        throw Error(ExitCode::usage,
                    {concat(option_of(name), " ", value),
                     "this version of Lockstep does not know it",
                     concat("Give one of ",
                            joined(std::vector<std::string>(values.begin(), values.end()), ", "))});
    }
}

/// Refuses a JSON value that is not of the field's kind: it would be converted.
void require_kind(Json const& json, std::string const& name, bool fits) {
    if (!fits) {
        throw Error(ExitCode::data,
                    {"the federation's charter cannot be read",
                     concat("its ", name, " is ", json.dump(-1, ' ', true).substr(0, 80)),
                     "Ask the coordinator to send the charter again"});
    }
}

template <class Value>
bool is_of_kind(Json const& json, Value const& /*like*/) {
    if constexpr (std::is_floating_point_v<Value>) {
        return json.is_number();
    } else if constexpr (std::is_integral_v<Value>) {
        return json.is_number_integer();
    } else {
        return json.is_string();
    }
}

void require(bool holds, std::string const& what, std::string const& why, std::string const& next) {
    if (!holds) {
        throw Error(ExitCode::usage, {what, why, next});
    }
}

} // namespace

std::map<std::string, std::string> Charter::options() const {
    std::map<std::string, std::string> options{{"--secure", config::printed(is_secure())}};
    for_each_option(*this, [&](std::string const& name, auto const& value) {
        options[option_of(name)] = config::printed(value);
    });
    return options;
}

Limits limits_of(std::string const& field) {
    static std::map<std::string, Limits> const limits{
        {"server_epsilon", {.min = 1e-12}},
        {"rounds", {.min = 1}},
        {"min_sites", {.min = 1}},
        {"threshold", {.min = 0, .max = 255}}, // 0: not secure
        {"participation", {.min = 1e-6, .max = 1}},
        {"range", {.min = 1e-9, .max = 1e9}},
        {"delta", {.min = 1e-30, .max = 0.5}}};
    auto const found = limits.find(field);
    return found != limits.end() ? found->second : Limits{};
}

void Charter::require_sound() const {
    for_each_option(*this, [](std::string const& name, auto const& value) {
        if constexpr (!std::is_convertible_v<decltype(value), std::string>) {
            require_within(name, value);
        }
    });
    require_one_of("strategy", strategy, {"fedavg", "fedprox", "fedadam", "scaffold"});
    require_one_of("accountant", accountant, {"rdp", "prv"});
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
    auto const first = budget > 0 ? epsilon_of({participation, noise}, 1, delta, accountant) : 0;
    require(first <= budget, concat("--epsilon ", budget),
            concat("epsilon is already ", first, " after one round"),
            "Raise --epsilon or --noise, or lower --participation");
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
        if (json.at("version") != version) {
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
                auto const& given = json.at(name);
                require_kind(given, name, is_of_kind(given, value));
                given.get_to(value);
            }
        });
        // It goes into the lines of a site's journal.
        bool const plain = charter.id.find_first_not_of("0123456789abcdef") == std::string::npos;
        require_kind(json.at("id"), "id", plain && !charter.id.empty() && charter.id.size() <= 64);
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
