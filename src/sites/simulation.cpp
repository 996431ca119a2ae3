#include "sites/simulation.hpp"

#include "base/file.hpp"
#include "base/hash.hpp"
#include "base/list.hpp"
#include "base/own_directory.hpp"
#include "base/own_file.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "config/changes.hpp"
#include "config/share.hpp"
#include "config/values.hpp"
#include "data/division.hpp"
#include "data/plan.hpp"
#include "federate/deck_files.hpp"
#include "lockstep/data/dataset.hpp"
#include "nn/named_code.hpp"
#include "nn/program_records.hpp"
#include "sites/founding.hpp"
#include "sites/take_part.hpp"
#include "train/run_directory.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>

namespace lockstep::sites {

namespace {

constexpr std::int64_t max_named = 1000; ///< classes that a file without names gets names for

/// The lines of the options, and their hash: without it, lines that were lost or overwritten would
/// look like options that have changed.
std::string with_checksum(std::string_view lines) {
    return concat(lines, "checksum = ", hex(hash64(lines)), "\n");
}

} // namespace

Simulation::Simulation(config::Deck deck, SimulationOptions options)
    : deck_(std::move(deck)), options_(std::move(options)), directory_(deck_.run.directory) {}

std::string Simulation::site_name(std::size_t number) {
    return concat("site-", zero_padded(static_cast<std::int64_t>(number) + 1, 5));
}

/// All that decides the sites' data and the federation: the options except --groups, and the deck.
std::map<std::string, std::string> Simulation::option_texts() const {
    auto options = options_.charter.options();
    options["--sites"] = config::printed(options_.sites);
    if (options_.dirichlet > 0) {
        options["--dirichlet"] = config::printed(options_.dirichlet);
    }
    for (auto const& setting : config::settings(deck_)) {
        options[setting.key] = trimmed(setting.value);
    }
    return options;
}

void Simulation::require_same_options() const {
    if (!std::filesystem::exists(options_file())) {
        return; // nothing was divided yet, or by an earlier version: `found` compares the charter
    }
    auto const text = read_text(options_file());
    auto const lines = std::string_view(text).substr(0, text.rfind("checksum = "));
    if (text != with_checksum(lines)) {
        throw Error(ExitCode::data,
                    {concat(options_file().string(), " is damaged"),
                     "its lines do not have the checksum of the options with which this simulation "
                     "was started",
                     "Remove this file to continue without comparing the options, or name another "
                     "run.directory"});
    }
    std::map<std::string, std::string> before;
    for (auto const& line : split(trimmed(lines), '\n')) {
        auto const sign = std::min(line.find('='), line.size());
        auto const value = std::string_view(line).substr(std::min(sign + 1, line.size()));
        before[std::string(trimmed(std::string_view(line).substr(0, sign)))] = trimmed(value);
    }
    if (auto const changes = config::changes(before, option_texts()); !changes.empty()) {
        throw Error(
            ExitCode::usage,
            {concat(directory_.string(), " holds a simulation that was started with other options"),
             joined(changes, "; "),
             "Give the same options as before to continue it, or name another "
             "run.directory"});
    }
}

void Simulation::divide() {
    static_cast<void>(fields_of_deck()); // which refuses other data than one plain file
    auto const whole = open_training_set(deck_);
    std::vector<std::int64_t> labels(static_cast<std::size_t>(whole.samples()), 0);
    if (whole.has_labels()) {
        std::vector<std::int64_t> all(labels.size());
        std::iota(all.begin(), all.end(), 0);
        whole.read_targets(all, labels);
    } else if (options_.dirichlet > 0) {
        throw Error(ExitCode::usage, {concat("--dirichlet ", options_.dirichlet),
                                      "the samples have no classes by which to divide them",
                                      "Leave --dirichlet out"});
    }
    classes_ = whole.declared_classes();
    if (classes_.empty() && whole.has_labels() && whole.classes() <= max_named) {
        classes_ = whole.class_names();
    }
    auto const owners = federate::sites_of_samples(
        labels, {options_.sites, options_.dirichlet, static_cast<std::uint64_t>(deck_.run.seed)});
    samples_.assign(count(), {});
    for (std::size_t sample = 0; sample < owners.size(); ++sample) {
        samples_[static_cast<std::size_t>(owners[sample])].push_back(
            static_cast<std::int64_t>(sample));
    }
    require_steps(labels);
}

void Simulation::write_data() const {
    auto const fields = fields_of_deck();
    make_private_directory(directory_ / "data"); // parts of a file that may be private
    train::remove_partials(directory_ / "data");
    // Of a federation without this file, made by an earlier version, nobody knows all options.
    if (!federation_ && !std::filesystem::exists(options_file())) {
        std::string lines;
        for (auto const& [name, value] : option_texts()) {
            lines += concat(name, " = ", value, "\n");
        }
        write_text_durably(options_file(), with_checksum(lines));
    }
    for (std::size_t i = 0; i < count(); ++i) {
        if (!std::filesystem::exists(data_of(i))) {
            federate::write_part(deck_.data.train, fields, samples_[i], classes_, data_of(i));
        }
    }
}

/// How many of a site's samples it trains with: without the share for validation, whose size is the
/// same with every seed.
///
/// Throws  Error 64 for a share without a sample
std::int64_t Simulation::learnt_of(std::vector<std::int64_t> const& samples,
                                   std::vector<std::int64_t> const& labels) const {
    auto const percent = config::share_of(deck_.data.validation);
    if (!percent) {
        return std::ssize(samples);
    }
    std::vector<std::int64_t> own;
    for (auto const sample : samples) {
        own.push_back(labels[static_cast<std::size_t>(sample)]);
    }
    std::vector<std::int64_t> counts(static_cast<std::size_t>(*std::ranges::max_element(own)) + 1,
                                     0); // each site has a sample
    for (auto const label : own) {
        ++counts[static_cast<std::size_t>(label)];
    }
    auto const division = data::draw_share_of_classes(
        counts, *percent, static_cast<std::uint64_t>(deck_.run.seed),
        [&](auto const& take) { take(std::span<std::int64_t const>(own)); });
    if (division.drawn() == 0) {
        throw Error(ExitCode::usage,
                    {concat("data.validation = ", deck_.data.validation),
                     "no sample would be left for validation", "Name a larger share"});
    }
    return division.others();
}

/// That each site has samples enough for a step, before any of them trains.
void Simulation::require_steps(std::vector<std::int64_t> const& labels) const {
    auto const& run = deck_.run;
    auto const of_all = deck_.data.global_batch / run.replicas;
    std::vector<std::string> poor;
    std::string why;
    for (std::size_t i = 0; i < count(); ++i) {
        auto const failure = comm::failure_of([&] {
            data::TrainPlan({.samples = learnt_of(samples_[i], labels),
                             .batch = of_all > 0 ? of_all : deck_.data.batch,
                             .replicas = static_cast<int>(run.replicas),
                             .accumulate = static_cast<int>(deck_.optimizer.accumulate),
                             .drop_last = deck_.data.drop_last});
        });
        if (failure) {
            poor.push_back(
                concat(site_name(i), " (", amount_of(std::ssize(samples_[i]), "sample"), ")"));
            why = failure->text().why;
        }
    }
    constexpr std::size_t named = 8;
    if (poor.size() > named) {
        auto const others = poor.size() - named;
        poor.resize(named);
        poor.push_back(concat("and ", amount_of(others, "other")));
    }
    if (!poor.empty()) {
        bool const shared = config::share_of(deck_.data.validation).has_value();
        throw Error(
            ExitCode::usage,
            {concat("too few samples for ", joined(poor, ", ")),
             shared ? concat(why, ", and data.validation takes ", trimmed(deck_.data.validation),
                             " of a site's samples")
                    : why,
             concat(options_.dirichlet > 0 ? "Use a larger --dirichlet, or lower " : "Lower ",
                    "--sites",
                    !deck_.data.drop_last ? " or run.replicas"
                    : of_all > 0          ? ", data.global-batch or optimizer.accumulate"
                                          : ", run.replicas, data.batch or optimizer.accumulate",
                    shared ? ", or change data.validation" : "")});
    }
}

void Simulation::found(federate::ModelVector const& first) {
    auto charter = charter_for(options_.charter, deck_, first);
    charter.id = hex_text(secret("federation").bytes()).substr(0, 32);
    if (std::filesystem::exists(federation_directory() / "charter.h5")) {
        federation_ = std::make_unique<federate::Federation>(federation_directory());
        auto const& before = federation_->charter();
        federate::require_same_files(before, deck_, nn::code_files(deck_), nn::for_records);
        charter.files = before.files;
        if (before.classes.empty()) { // none, or of an earlier version
            charter.classes.clear();
        }
        if (before.text() != charter.text()) {
            throw Error(ExitCode::usage,
                        {concat(directory_.string(), " holds another simulation"),
                         "that simulation was started with another deck or other options",
                         "Name another run.directory, or remove the directory of that simulation"});
        }
    }
    write_data();
    make_own_directory(directory_ / "keys");
    coordinator_key_ = std::make_unique<federate::PrivateKey>(key_of("coordinator"));
    if (!federation_) {
        federation_ = std::make_unique<federate::Federation>(
            federate::Federation::found(federation_directory(), charter, first, *coordinator_key_));
    }
    lock_ = std::make_unique<FileLock>(
        federate::sole_process(federation_directory() / "coordinator.lock", "the coordinator"));
    coordinator_ = std::make_unique<federate::Coordinator>(*federation_, *coordinator_key_);
    open_sites(0, 1);
    for (auto const& site : sites_) {
        site->join();
    }
    coordinator_->admission().accept({"all"});
}

void Simulation::open(std::size_t group, std::size_t groups) {
    federation_ = std::make_unique<federate::Federation>(federation_directory());
    open_sites(group, groups);
}

void Simulation::open_sites(std::size_t first, std::size_t step) {
    keys_.resize(count());
    sites_.resize(count());
    for (std::size_t i = first; i < count(); i += step) {
        keys_[i] = std::make_unique<federate::PrivateKey>(key_of(site_name(i)));
        sites_[i] = std::make_unique<federate::Site>(*federation_, *keys_[i],
                                                     directory_ / "sites" / site_name(i));
    }
}

config::Deck Simulation::deck_of(std::size_t site) const {
    auto deck = deck_;
    deck.data.train = data_of(site).string();
    deck.optimizer.proximal = options_.charter.proximal;
    if (options_.groups > 1) {
        deck.monitor.progress = "none"; // several bars do not fit on a terminal
    }
    return deck;
}

federate::FieldNames Simulation::fields_of_deck() const {
    auto names = list_texts(deck_.data.inputs);
    std::ranges::copy(list_texts(deck_.data.targets), std::back_inserter(names));
    bool const plain = data::expand_files(deck_.data.train).size() == 1 &&
                       deck_.data.sequence == 0 && !deck_.data.sample_per_file &&
                       deck_.data.sample_weights.empty();
    if (!plain) {
        throw Error(ExitCode::usage,
                    {concat("data.train = ", deck_.data.train),
                     "a simulation divides one file with a row for each sample, and does not "
                     "support data.sequence, data.sample-per-file or data.sample-weights",
                     "Name one such file, and leave these keys out"});
    }
    return {names};
}

federate::Secret Simulation::secret(std::string const& name) const {
    std::array<std::uint8_t, federate::Secret::size> none{};
    return federate::Secret(none).derived(concat("simulation ", deck_.run.seed, " ", name));
}

federate::PrivateKey Simulation::key_of(std::string const& name) const {
    return federate::PrivateKey::simulated(directory_ / "keys" / concat(name, ".key"), name,
                                           secret(name));
}

std::filesystem::path Simulation::data_of(std::size_t site) const {
    return directory_ / "data" / concat(site_name(site), ".h5");
}

} // namespace lockstep::sites
