#include "federate_options.hpp"

#include <algorithm>
#include <iterator>

namespace lockstep::app {

namespace {

/// What a federation is founded on.
std::vector<Option> charter_rows(federate::Charter& charter, bool& secure) {
    return {
        option::one_of("--strategy", {"fedavg", "fedprox", "fedadam", "scaffold"},
                       "how the mean change updates the global model", charter.strategy),
        option::whole("--rounds N", "number of rounds", charter.rounds),
        option::whole("--min-sites N", "minimum number of sites in a round", charter.min_sites),
        option::real("--participation P", "probability that a site is drawn for a round",
                     charter.participation, {.least = 1e-6, .most = 1}),
        option::real("--server-rate R", "learning rate of the global model", charter.server_rate),
        option::real("--server-epsilon E", "fedadam: term added to the denominator",
                     charter.server_epsilon, {.least = 1e-12}),
        option::real("--proximal MU", "fedprox: strength of the pull towards the global model",
                     charter.proximal),
        option::real("--range R", "largest change of a weight in a round; larger ones are clipped",
                     charter.range, {.least = 1e-9, .most = 1e9}),
        option::flag("--secure", "secure aggregation: the coordinator sees only the sum of changes",
                     secure),
        option::whole("--threshold T",
                      "secure aggregation: number of sites that can unmask the sum; default: two "
                      "thirds of --min-sites, at least 2",
                      charter.threshold, {.least = 2, .most = 255}),
        option::real("--clip C", "largest L2 norm of a site's change; 0: off", charter.clip),
        option::real("--noise Z",
                     "differential privacy: standard deviation of the noise, relative to --clip",
                     charter.noise),
        option::whole("--expected-sites N",
                      "with --noise: number of sites that will join, used to compute the mean",
                      charter.expected_sites),
        option::real("--delta D", "delta at which epsilon is reported", charter.delta,
                     {.least = 1e-30, .most = 0.5}),
        option::real("--epsilon E", "stop before epsilon exceeds this; 0: never", charter.budget)};
}

} // namespace

void settle_charter(federate::Charter& charter, bool secure, std::int64_t sites) {
    if (secure && charter.threshold == 0) {
        charter.threshold = std::max<std::int64_t>(2, (2 * sites + 2) / 3);
    }
    charter.require_sound();
}

Options federate_init_options(FederateInitTold& told) {
    Options options{
        .command = "lockstep federate init",
        .positions = {"DIRECTORY DECK", 2, 2},
        .about =
            "Starts a federation: writes its charter, signed by the coordinator, and the first "
            "global model. The deck's train.steps or train.epochs is the length of a site's "
            "training in one round. Without --weights, the first weights are drawn from the "
            "seed, and the deck must name data with the same shapes and classes as the sites' "
            "data.",
        .rows = {option::required(option::path(
                     "--key FILE", "file for the coordinator's private key, outside DIRECTORY",
                     told.key)),
                 option::path("--weights FILE",
                              "first weights: a safetensors file, a best.h5 or a checkpoint",
                              told.weights)},
        .deck_keys = true};
    std::ranges::move(charter_rows(told.charter, told.secure), std::back_inserter(options.rows));
    return options;
}

Options federate_join_options(FederateJoinTold& told) {
    return {
        .command = "lockstep federate join",
        .positions = {"DIRECTORY", 1, 1},
        .about = "Makes a site's key pair, and puts its public key into the federation's "
                 "directory. The coordinator must accept the site before it takes part.",
        .rows = {option::required(option::text("--site NAME", "name of the site", told.site)),
                 option::required(option::path(
                     "--key FILE", "file for the site's private key, outside DIRECTORY", told.key)),
                 option::text("--coordinator FINGERPRINT",
                              "the coordinator's public key, as init has printed it; default: "
                              "trust the one in DIRECTORY",
                              told.coordinator)}};
}

Options federate_round_options(FederateRoundTold& told) {
    return {
        .command = "lockstep federate round",
        .positions = {"DIRECTORY", 1, 1},
        .about =
            "For a site: does what the current round asks of it (announce itself, share keys, "
            "train, send the update, unmask), and exits; keys of the deck may name the site's "
            "own data. For the coordinator: processes what the sites have sent, and opens the next "
            "phase or writes the new global model. Can be killed and repeated at any time.",
        .rows = {option::text("--site NAME", "name of the site", told.site),
                 option::flag("--coordinator", "act as coordinator", told.coordinator),
                 option::required(option::path("--key FILE", "private key", told.key)),
                 option::real("--wait SECONDS",
                              "site: how long to wait for the next phase before exiting",
                              told.wait_s, {.most = 1e7}),
                 option::texts("--accept FINGERPRINT,...",
                               "coordinator: accept the sites with these fingerprints; all: every "
                               "site that has joined",
                               told.accept),
                 option::flag("--close",
                              "coordinator: continue without sites that have not answered",
                              told.close),
                 option::flag("--abandon", "coordinator: end the round without a result",
                              told.abandon)},
        .exclusive = {"--close", "--abandon"},
        .deck_keys = true};
}

Options federate_info_options(FederateInfoTold& told) {
    return {.command = "lockstep federate info",
            .positions = {"DIRECTORY", 1, 1},
            .about = "Shows a federation: settings, sites, the current round, what each site has "
                     "sent, and the epsilon spent.",
            .rows = {option::flag("--json", "print one line of JSON per round", told.json)}};
}

Options federate_simulate_options(FederateSimulateTold& told) {
    Options options{
        .command = "lockstep federate simulate",
        .positions = {"DECK", 1, 1},
        .about = "Runs a whole federation in one job: divides data.train among sites, which train "
                 "one after the other on all ranks, and send signed files as real sites do. The "
                 "results are the same on any number of ranks. All files are in run.directory; if "
                 "the job is interrupted, the same command continues the simulation.",
        .rows = {option::required(option::whole("--sites N", "number of sites", told.sites,
                                                {.least = 1, .most = 100000})),
                 option::real("--dirichlet A",
                              "draw the sites' shares of each class from a Dirichlet distribution; "
                              "small values make sites differ; default: even shares",
                              told.dirichlet, {.least = 0, .most = 1e6})},
        .deck_keys = true};
    std::ranges::move(charter_rows(told.charter, told.secure), std::back_inserter(options.rows));
    return options;
}

} // namespace lockstep::app
