#include "train_side_options.hpp"

#include "lockstep/config/deck_source.hpp"

namespace lockstep::app {

// Where a deck is missing, its reader says so.

Options train_options(TrainTold& told) {
    return {.command = "lockstep train",
            .positions = {"DECK...", 0, 1000},
            .about = "Trains, or resumes where the run was interrupted; of several decks the later "
                     "wins.",
            .rows = {option::flag("--force", "resume although the deck has changed", told.force),
                     option::flag("--quiet", "warnings, and how it ended", told.quiet),
                     option::flag("--verbose", "also each record and checkpoint", told.verbose),
                     option::flag("--json", "the records of metrics.jsonl instead of words",
                                  told.json)},
            .exclusive = {"--quiet", "--verbose", "--json"},
            .deck_keys = true};
}

Options plan_options(PlanTold& told) {
    return {.command = "lockstep plan",
            .positions = {"DECK", 0, 1},
            .about = "Everything that train would do, without training: whether it starts, "
                     "resumes, is finished or is refused, which rank hosts which replicas where, "
                     "memory, buckets, checkpoints.",
            .rows = {option::whole("--ranks N", "as if so many had been started", told.ranks),
                     option::whole("--ranks-per-host M", "of these", told.per_host)},
            .deck_keys = true};
}

Options check_options(CheckTold& told) {
    return {.command = "lockstep check",
            .positions = {"[DECK]", 0, 1},
            .about = "Whether the hosts, devices, network and disk of this launch are fit, and "
                     "with a deck, whether its training fits them: green, yellow and red findings, "
                     "each with its remedy. Start it as you would start the training. Exit 69 when "
                     "something is red.",
            .rows = {option::flag("--json", "a line of JSON for each finding", told.json)},
            .deck_keys = true};
}

Options estimate_options(measure::EstimateOptions& told) {
    return {
        .command = "lockstep estimate",
        .positions = {"DECK", 0, 1},
        .about = "Measures a step of the deck's training on one rank and on all that were "
                 "started, and the network, and predicts 1 to 1024 ranks: speed-up, "
                 "efficiency, time and cost. The network between hosts is measured when ranks "
                 "run on several, else given or assumed.",
        .rows = {option::whole("--steps N", "that are measured", told.steps),
                 option::whole("--max-ranks N", "up to which is predicted", told.max_ranks),
                 option::whole("--ranks-per-host N",
                               "default: as many as were started on this host, "
                               "or, if that is one, as it has devices or cores for",
                               told.per_host),
                 option::wholes("--batches B,B,...",
                                "total batches to try, with the memory each takes", told.batches),
                 option::real("--price-per-hour P", "of one rank, in any currency", told.price),
                 option::real("--watts W", "of one rank", told.watts),
                 option::real("--network-gbit G", "bandwidth between hosts, in Gbit/s", told.gbit),
                 option::real("--latency-us L", "between hosts", told.latency_us),
                 option::flag("--json", "a line of JSON for each row", told.json)},
        .deck_keys = true};
}

Options evaluate_options(NothingTold&) {
    return {.command = "lockstep evaluate",
            .positions = {"DECK CHECKPOINT|RUN", 2, 2},
            .about = "Measures data.test, or data.validation where the deck has no test set, with "
                     "a checkpoint or a best.h5; of a run's directory with its best.h5, or its "
                     "newest checkpoint where it has none. The figures are the same on any number "
                     "of ranks.",
            .deck_keys = true};
}

Options bench_step_options(BenchStepTold& told) {
    return {.command = "lockstep bench step",
            .about = "One training step with AdamW on fresh random images, each rank a replica. A "
                     "step takes the mean of all ranks' times.",
            .rows = {option::one_of("--model", {"mlp18m", "cnn"}, "those of docs/performance.md",
                                    told.model),
                     option::one_of("--variant", {"engine", "native", "dp", "alone", "bare"},
                                    "engine: as in training; native: with reduction = native; dp: "
                                    "two replicas on threads; alone: every rank trains by itself, "
                                    "without communication; bare: the same, with a plain LibTorch "
                                    "loop and LibTorch's AdamW",
                                    told.variant),
                     option::whole("--batch N", "samples of a replica", told.batch),
                     option::whole("--steps N", "that are measured", told.steps),
                     option::flag("--json", "a line of JSON", told.json)}};
}

Options models_options(NothingTold&) {
    return {.command = "lockstep models",
            .positions = {"[NAME]", 0, 1},
            .about = "What model.name can be, with the keys of each."};
}

Options tasks_options(NothingTold&) {
    return {.command = "lockstep tasks",
            .positions = {"[NAME]", 0, 1},
            .about = "What task.kind can be, with the keys of each."};
}

std::string train_help(HelpWords const&) {
    return help_of(train_options) + "\nKeys of the deck and their defaults:\n" +
           config::keys_help();
}

std::string plan_help(HelpWords const&) {
    return help_of(plan_options);
}

std::string check_help(HelpWords const&) {
    return help_of(check_options);
}

std::string estimate_help(HelpWords const&) {
    return help_of(estimate_options);
}

std::string evaluate_help(HelpWords const&) {
    return help_of(evaluate_options);
}

std::string bench_step_help(HelpWords const&) {
    return help_of(bench_step_options);
}

std::string models_help(HelpWords const&) {
    return help_of(models_options);
}

std::string tasks_help(HelpWords const&) {
    return help_of(tasks_options);
}

} // namespace lockstep::app
