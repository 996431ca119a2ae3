#include "sites/take_part.hpp"

#include "base/hash.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "batches/model_facts.hpp"
#include "batches/workload.hpp"
#include "checkpoint/store.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "config/share.hpp"
#include "lockstep/config/deck_source.hpp"
#include "lockstep/model_files/load_weights.hpp"
#include "lockstep/monitor/metrics_file.hpp"
#include "lockstep/task/task.hpp"
#include "monitor/console.hpp"
#include "optimizer/schedule.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace lockstep::sites {

namespace {

/// What a site's training in one round differs in from the federation's deck.
struct LocalRun {
    std::string directory;
    std::string weights; ///< a copy of the global model
    std::int64_t seed = 0;
    std::string correction; ///< what is added to gradients; empty: nothing

    std::string packed() const {
        return joined({directory, weights, std::to_string(seed), correction},
                      std::string(1, unit_separator));
    }
    static LocalRun unpacked(std::string const& text) {
        auto const parts = split(text, unit_separator);
        return {parts.at(0), parts.at(1), std::stoll(parts.at(2)), parts.at(3)};
    }
};

LocalRun local_run(federate::Federation const& federation, federate::Site const& site,
                   config::Deck const& deck, std::int64_t round) {
    auto const key = random_key(static_cast<std::uint64_t>(deck.run.seed), Stream::order,
                                {static_cast<std::uint64_t>(round), hash64(site.name())});
    return {site.run_directory(round).string(),
            std::filesystem::absolute(site.write_first(round)).string(),
            static_cast<std::int64_t>(key >> 2),
            federation.charter().has_controls() ? site.write_correction(round).string() : ""};
}

std::vector<std::unique_ptr<train::Observer>> observers(config::Deck const& deck) {
    std::filesystem::path const directory = deck.run.directory;
    std::vector<std::unique_ptr<train::Observer>> all;
    all.push_back(std::make_unique<monitor::MetricsFile>(directory / "metrics.jsonl"));
    all.push_back(std::make_unique<monitor::Console>(
        monitor::Log(directory / "log.txt", monitor::Talk::quiet), deck.monitor.progress));
    return all;
}

/// Classes have numbers in the model's outputs, so that sites agree only if their names do.
void require_same_classes(federate::Charter const& charter, data::Dataset const& set) {
    if (charter.classes.empty()) {
        return;
    }
    auto const theirs = split(charter.classes, '\n');
    auto const refuse = [&](std::string const& why) {
        throw Error(ExitCode::data,
                    {"data.train of this site does not match the federation's model", why,
                     concat("Import the data with --classes \"", joined(theirs, ","), "\"")});
    };
    auto const& ours = set.declared_classes();
    if (ours.empty()) {
        if (std::ssize(theirs) != set.classes()) {
            refuse(concat("its labels have ", set.classes(),
                          " classes without names, but the model has ", theirs.size()));
        }
        return;
    }
    auto const [here, there] = std::ranges::mismatch(ours, theirs);
    if (here != ours.end()) {
        refuse(concat("its class ", here - ours.begin(), " is ", *here,
                      there == theirs.end() ? std::string(", but the federation has no such class")
                                            : concat(", but the federation calls it ", *there)));
    }
    if (there != theirs.end()) {
        refuse(concat("it lacks the class ", *there, ", of which no sample is needed"));
    }
}

std::int64_t count_samples(federate::Charter const& charter, config::Deck const& deck) {
    if (task::is_played(deck.task)) {
        return 1;
    }
    auto const whole = open_training_set(deck);
    require_same_classes(charter, whole);
    auto const percent = config::share_of(deck.data.validation);
    return percent
               ? whole.divided(*percent, static_cast<std::uint64_t>(deck.run.seed)).first.samples()
               : whole.samples();
}

/// A site whose samples or labels need another model is told so before the others count on it.
///
/// Returns  a line for the user; empty: nothing to tell
std::string require_fitting_data(federate::Federation const& federation, config::Deck deck) {
    if (task::is_played(deck.task)) {
        return {};
    }
    deck.data.test.clear();
    static_cast<void>(federation.model_before(1)); // no other than the charter's is looked at
    checkpoint::VerifiedFile const model(federation.global_file(0));
    auto const facts = train::facts_of(model);
    auto datasets = train::open_datasets(deck);
    if (auto const differs = data::difference(datasets.train->facts(), facts, "the federation");
        !differs.empty()) {
        throw Error(
            ExitCode::data,
            {"data.train of this site does not match the federation's model", differs,
             "Prepare the data as the other sites have: the same columns, types and classes"});
    }
    auto const work = train::open_workload(deck, std::move(datasets), [](double) {});
    try {
        train::load_weights(*work.model, model);
    } catch (Error const& error) {
        throw Error(error.code(),
                    {"data.train of this site does not match the federation's model",
                     error.text().why,
                     "Prepare the data as the other sites have: the same shape of the samples, and "
                     "the same classes"});
    }
    return facts.scale_known ? ""
                             : "warning: the federation's model does not say how its inputs were "
                               "normalized, so each site uses the mean and std of its own data";
}

/// Whether this site has trained in a round before this one.
bool has_trained(federate::Site const& site, std::int64_t round) {
    for (auto earlier = round - 1; earlier > 0; --earlier) {
        if (std::filesystem::exists(site.run_directory(earlier))) {
            return true;
        }
    }
    return false;
}

/// The sum of the learning rates of a round's steps, with a schedule that needs no length.
double sum_of_rates(config::Deck const& deck, std::int64_t steps) {
    train::Schedule const schedule(deck, 1, steps);
    double sum = 0;
    for (std::int64_t step = 0; step < steps; ++step) {
        sum += schedule.rate(step);
    }
    return sum;
}

/// What a resume of a round's training is refused for, with advice that the commands of a
/// federation can follow: they have no --force, and a site cannot start its round over.
AgreedError refused_resume(AgreedError const& error) {
    auto const& text = error.text();
    bool const of_train = text.next.find("--force") != std::string::npos;
    return {
        error.code(),
        {text.what, text.why,
         of_train
             ? "Repeat the command with the data and options that the training of this round began "
               "with"
             : text.next},
        error.rank(),
        error.cause()};
}

/// Whether training came to its end.
///
/// Collective  over the site's ranks
/// Throws      AgreedError as train::train
bool train_round(SiteRanks const& own, config::Deck deck, LocalRun const& local) {
    deck.run.directory = local.directory;
    deck.run.name = std::filesystem::path(local.directory).filename().string();
    deck.run.seed = local.seed;
    deck.model.weights = local.weights;
    deck.model.weights_match = "strict";
    deck.data.test.clear(); // sites do not choose by it, and it need not be here
    deck.checkpoint.keep = 1;
    deck.monitor.tensorboard = false;
    deck.monitor.images = 0;
    deck.monitor.plots = false;
    try {
        auto const ended = train::train(own.ranks,
                                        {.deck = deck,
                                         .version = own.version,
                                         .observers = observers,
                                         .stepped = [&] { own.watchdog.hear_of_exit_first(); },
                                         .asked = own.asked,
                                         .place = own.place,
                                         .correction = local.correction},
                                        own.signals);
        return ended.reason == "finished" || ended.reason == "already finished";
    } catch (AgreedError const& error) {
        throw refused_resume(error);
    }
}

} // namespace

data::Dataset open_training_set(config::Deck const& deck) {
    return data::Dataset(train::dataset_options(deck, deck.data.train));
}

std::optional<federate::Standing> take_part(SiteRanks const& own,
                                            federate::Federation const* federation,
                                            federate::Site const* site, config::Deck const& deck) {
    std::optional<std::int64_t> samples;
    federate::Standing standing;
    while (true) {
        std::string packed;
        comm::agree(own.ranks, "taking part in the round", [&] {
            if (site != nullptr) {
                standing = site->proceed(samples);
                if (standing.need == federate::Need::samples) {
                    samples = count_samples(federation->charter(), deck);
                    if (!has_trained(*site, standing.round)) {
                        if (auto const told = require_fitting_data(*federation, deck);
                            !told.empty()) {
                            own.tell(told);
                        }
                    }
                    standing = site->proceed(samples);
                }
                if (standing.need == federate::Need::training) {
                    site->require_announced(standing.round,
                                            count_samples(federation->charter(), deck));
                    packed = local_run(*federation, *site, deck, standing.round).packed();
                }
            }
        });
        comm::broadcast_text(own.ranks, packed);
        if (packed.empty()) {
            return standing;
        }
        auto const local = LocalRun::unpacked(packed);
        if (!train_round(own, deck, local)) {
            return std::nullopt;
        }
        comm::agree(own.ranks, "sending the update", [&] {
            if (site != nullptr) {
                auto const newest =
                    checkpoint::Store(std::filesystem::path(local.directory) / "checkpoints", 1)
                        .list();
                if (newest.empty()) {
                    throw Error(ExitCode::no_input,
                                {concat("no checkpoint in ", local.directory),
                                 "the checkpoint was removed after the training of this round",
                                 "Run the same command again"});
                }
                own.tell(site->send_update(standing.round,
                                           federate::ModelVector::read(newest.front().path),
                                           sum_of_rates(deck, newest.front().step)));
            }
        });
    }
}

} // namespace lockstep::sites
