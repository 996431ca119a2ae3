#include "federate_options.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/config/deck_source.hpp"

#include <algorithm>
#include <iterator>

namespace lockstep::app {

namespace {

option::RealLimits charter_limits(char const* field) {
    auto const [min, max] = federate::limits_of(field);
    return {.min = min, .max = max};
}

/// What a federation is founded on.
std::vector<Option> charter_rows(federate::Charter& charter, bool& secure) {
    return {
        option::one_of("--strategy", {"fedavg", "fedprox", "fedadam", "scaffold"},
                       "how the mean of the sites' changes updates the global model",
                       charter.strategy),
        option::whole("--rounds N", "number of rounds", charter.rounds),
        option::whole("--min-sites N", "minimum number of sites in a round", charter.min_sites),
        option::real("--participation P", "probability that a site is drawn for a round",
                     charter.participation, charter_limits("participation")),
        option::real("--server-rate R", "learning rate of the global model", charter.server_rate),
        option::real("--server-epsilon E", "fedadam: term added to the denominator",
                     charter.server_epsilon, charter_limits("server_epsilon")),
        option::real("--proximal MU", "fedprox: strength of the pull towards the global model",
                     charter.proximal),
        option::real("--range R",
                     "largest change of a weight in a round; larger changes are clipped",
                     charter.range, charter_limits("range")),
        option::flag("--secure", "secure aggregation: the coordinator sees only the sum of changes",
                     secure),
        option::whole("--threshold T",
                      "with --secure: number of sites that together can unmask the sum; default: "
                      "two thirds of --min-sites, but at least 2",
                      charter.threshold, {.min = 2, .max = 255}),
        option::real("--clip C", "L2 norm to which a site's change is clipped; 0: no clipping",
                     charter.clip),
        option::real("--noise Z",
                     "standard deviation of the noise for differential privacy, relative to --clip",
                     charter.noise),
        option::whole("--expected-sites N",
                      "with --noise: expected number of sites, used to compute the mean",
                      charter.expected_sites),
        option::real("--delta D", "delta at which epsilon is reported", charter.delta,
                     charter_limits("delta")),
        option::real("--epsilon E", "stop before epsilon exceeds this value; 0: no limit",
                     charter.budget),
        option::one_of("--accountant", {"rdp", "prv"},
                       "how epsilon is computed: by the Renyi divergence (rdp), or from the "
                       "distribution of the privacy loss, which gives a smaller epsilon (prv)",
                       charter.accountant)};
}

} // namespace

void settle_charter(federate::Charter& charter, bool secure, std::int64_t sites) {
    if (!secure && charter.threshold > 0) {
        throw Error(ExitCode::usage,
                    {concat("--threshold ", charter.threshold, " without --secure"),
                     "the threshold applies only to secure aggregation",
                     "Add --secure, or leave --threshold out"});
    }
    if (secure && charter.threshold == 0) {
        charter.threshold = std::max<std::int64_t>(2, (2 * sites + 2) / 3);
    }
    charter.require_sound();
}

Options federate_init_options(FederateInitTold& told) {
    Options options{
        .command = "lockstep federate init",
        .positions = {"DIRECTORY DECK", 2, 2},
        .about = "Starts a federation: writes the first global model, and the charter with the "
                 "federation's settings, which the coordinator signs. The key train.steps or "
                 "train.epochs of the deck sets the length of a site's training in one round. "
                 "Without --weights, the initial weights are drawn from run.seed, and the deck "
                 "must name data with the same shapes and classes as the sites' data.",
        .rows = {option::required(option::path(
                     "--key FILE", "file for the coordinator's private key, outside DIRECTORY",
                     told.key)),
                 option::path("--weights FILE",
                              "initial weights: a safetensors file, a best.h5 or a checkpoint",
                              told.weights)},
        .nearest_key = config::nearest_key};
    std::ranges::move(charter_rows(told.charter, told.secure), std::back_inserter(options.rows));
    return options;
}

Options federate_join_options(FederateJoinTold& told) {
    return {
        .command = "lockstep federate join",
        .positions = {"DIRECTORY", 1, 1},
        .about = "Makes a key pair for a site, and writes the public key into the federation's "
                 "directory. The site takes part after the coordinator has accepted it.",
        .rows = {option::required(option::text("--site NAME", "name of the site", told.site)),
                 option::required(option::path(
                     "--key FILE", "file for the site's private key, outside DIRECTORY", told.key)),
                 option::text("--coordinator FINGERPRINT",
                              "fingerprint of the coordinator, as printed by lockstep federate "
                              "init; default: trust the key in DIRECTORY",
                              told.coordinator)}};
}

namespace {

/// The words of a command that is run without a shell.
Option command_row(std::string const& words, std::string meaning, federate::CopyCommand& into) {
    return option::own(words, std::move(meaning), [&into](std::string const& text) {
        into.words = split(text, ' ');
        std::erase(into.words, "");
        if (into.words.empty()) {
            throw RefusedValue{"expected a program and its arguments"};
        }
    });
}

} // namespace

Options federate_round_options(FederateRoundTold& told) {
    return {
        .command = "lockstep federate round",
        .positions = {"DIRECTORY", 1, 1},
        .about =
            "For a site: does the next tasks of the site in the current round (announce the "
            "site, share keys, train, send the update, unmask), and exits; --section.key VALUE "
            "can name the site's own data. For the coordinator: processes the files that the "
            "sites have sent, and starts the next phase or writes the new global model. The "
            "command can be killed and repeated at any time.",
        .rows = {option::text("--site NAME", "name of the site", told.site),
                 option::flag("--coordinator", "act as coordinator", told.coordinator),
                 option::required(option::path(
                     "--key FILE", "file with the private key of the site or of the coordinator",
                     told.key)),
                 option::real("--wait SECONDS",
                              "site: how long to wait for the next phase before exiting",
                              told.wait_s, {.max = 1e7}),
                 command_row("--fetch COMMAND",
                             "command that copies files into DIRECTORY from where the others "
                             "put them; run before DIRECTORY is read",
                             told.fetch),
                 command_row("--push COMMAND",
                             "command that copies files from DIRECTORY to where the others "
                             "read them; run after files have been written",
                             told.push),
                 option::real("--copy-limit SECONDS",
                              "longest time that --fetch or --push may take before it is killed",
                              told.copy_limit_s, {.min = 1, .max = 1e6}),
                 option::texts("--accept FINGERPRINT,...",
                               "coordinator: accept the sites with these fingerprints; all: "
                               "accept every site that has joined",
                               told.accept),
                 option::texts("--remove NAME,...",
                               "coordinator: leave these sites out of all further rounds, "
                               "until they are accepted again by their fingerprints; in the "
                               "current round, they count as sites that have dropped out",
                               told.remove),
                 option::flag("--close",
                              "coordinator: continue without sites that have not answered",
                              told.close),
                 option::flag("--abandon", "coordinator: end the round without a result",
                              told.abandon)},
        .exclusive = {"--close", "--abandon"},
        .nearest_key = config::nearest_key};
}

Options federate_info_options(FederateInfoTold& told) {
    return {.command = "lockstep federate info",
            .positions = {"DIRECTORY", 1, 1},
            .about = "Shows a federation: its settings and sites, the current round, the files "
                     "that each site has sent, and the spent epsilon.",
            .rows = {option::flag("--json", "print one line of JSON per round", told.json)}};
}

Options federate_simulate_options(sites::SimulationOptions& told) {
    Options options{
        .command = "lockstep federate simulate",
        .positions = {"DECK", 1, 1},
        .about = "Runs a whole federation in one job. The samples of data.train are divided among "
                 "the sites. The sites train one after the other, each on all ranks, or with "
                 "--groups several at a time, and send signed files in the same way as real sites. "
                 "The results are bitwise identical on any number of ranks and groups. All files "
                 "are in run.directory. If the job is interrupted, the same command continues the "
                 "simulation.",
        .rows = {option::required(option::whole("--sites N", "number of sites", told.sites,
                                                {.min = 1, .max = 100000})),
                 option::real(
                     "--dirichlet A",
                     "draw the sites' shares of each class from a Dirichlet distribution; the "
                     "smaller A is, the more the sites' data differ; default: equal shares",
                     told.dirichlet, {.min = 1e-6, .max = 1e6}),
                 option::whole("--groups N",
                               "divide the ranks into N groups, which run the training of N "
                               "different sites at the same time",
                               told.groups, {.min = 1, .max = 100000})},
        .nearest_key = config::nearest_key};
    std::ranges::move(charter_rows(told.charter, told.secure), std::back_inserter(options.rows));
    return options;
}

} // namespace lockstep::app
