#include "train_side_options.hpp"

#include "lockstep/config/deck_source.hpp"

#include <limits>

namespace lockstep::app {

// Where a deck is missing, its reader says so.

Options train_options(TrainTold& told) {
    return {.command = "lockstep train",
            .positions = {"DECK...", 0, 1000},
            .about = "Trains a deck, or resumes the deck's run where the run was interrupted. If "
                     "several decks set the same key, the value in the last deck applies.",
            .rows = {option::flag("--force", "resume even if the deck has changed", told.force),
                     option::flag("--quiet", "print only warnings and the outcome of the run",
                                  told.quiet),
                     option::flag("--verbose", "also print each step record and each checkpoint",
                                  told.verbose),
                     option::flag("--json", "print the records of metrics.jsonl instead of text",
                                  told.json)},
            .exclusive = {"--quiet", "--verbose", "--json"},
            .nearest_key = config::nearest_key};
}

Options search_options(SearchTold& told) {
    return {.command = "lockstep search",
            .positions = {"SPACE.ini [DECK...]", 1, 1000},
            .about = "Trains many trials of a deck inside one allocation, each trial on a part of "
                     "the ranks, and looks for the best values of the keys in SPACE.ini. If the "
                     "command is started again, the search continues where it stopped. See also "
                     "lockstep search report, suggest and tell.",
            .rows = {option::path("--directory DIRECTORY",
                                  "directory of the search; default: runs/SPACE for SPACE.ini",
                                  told.directory)},
            .nearest_key = config::nearest_key};
}

Options plan_options(PlanTold& told) {
    return {
        .command = "lockstep plan",
        .positions = {"DECK", 0, 1},
        .about =
            "Shows, without training, what lockstep train would do: whether the run would start, "
            "resume or be refused, or has already finished; the replicas, host and device of each "
            "rank; and the memory, gradient buckets and checkpoints of the run.",
        .rows = {option::whole("--ranks N", "plan for N ranks, regardless of how many were started",
                               told.ranks),
                 option::whole("--ranks-per-host M",
                               "with --ranks: ranks per host; default: all ranks on one host",
                               told.per_host)},
        .nearest_key = config::nearest_key};
}

Options check_options(CheckTold& told) {
    return {.command = "lockstep check",
            .positions = {"[DECK]", 0, 1},
            .about = "Checks whether the hosts on which the command is started, their devices, "
                     "network and disk are ready for training. With a deck, it also checks whether "
                     "the training fits on them. Each finding is green, yellow or red; yellow and "
                     "red findings come with a remedy. Start this command in the same way as the "
                     "training. Exits with 69 if a finding is red.",
            .rows = {option::flag("--json", "print one line of JSON per finding", told.json)},
            .nearest_key = config::nearest_key};
}

Options estimate_options(measure::EstimateOptions& told) {
    return {
        .command = "lockstep estimate",
        .positions = {"DECK", 0, 1},
        .about = "Measures the network, and a training step of the deck on one rank and on all "
                 "ranks that were started. Predicts speed-up, efficiency, time and cost for 1 to "
                 "1024 ranks. The bandwidth and latency between hosts are taken from "
                 "--network-gbit and --latency-us. Without these options, they are measured if the "
                 "ranks run on several hosts, and assumed otherwise.",
        .rows =
            {option::whole("--steps N", "number of steps to measure", told.steps),
             option::whole("--max-ranks N", "largest number of ranks to predict", told.max_ranks),
             option::whole(
                 "--ranks-per-host N",
                 "ranks on each host; default: the number of ranks that were started on this host "
                 "or, if only one was started, the number of devices or cores of this host",
                 told.per_host),
             option::wholes("--batches B,B,...",
                            "numbers of samples per step, over all replicas, to compare by memory "
                            "and speed",
                            told.batches),
             option::real("--price-per-hour P", "price of one rank per hour, in any currency",
                          told.price),
             option::real("--watts W", "power of one rank in watts", told.watts),
             option::real("--network-gbit G", "bandwidth between hosts, in Gbit/s", told.gbit),
             option::real("--latency-us L", "latency between hosts, in microseconds",
                          told.latency_us),
             option::flag("--json", "print one line of JSON per row", told.json)},
        .nearest_key = config::nearest_key};
}

Options evaluate_options(EvaluateTold& told) {
    return {.command = "lockstep evaluate",
            .positions = {"[DECK] CHECKPOINT|RUN", 1, 2},
            .about = "Evaluates a checkpoint or a best.h5 on data.test or, if the deck has no test "
                     "set, on data.validation. If RUN is given, the run's best.h5 or, if the run "
                     "has none, its newest checkpoint is evaluated. Without DECK, the deck in the "
                     "checkpoint counts, but not its data sets: name one with --data.test. The "
                     "results are bitwise identical on any number of ranks.",
            .rows = {option::path("--outputs FILE.h5",
                                  "evaluate on data.train instead, and write what the model "
                                  "returns for each sample to FILE.h5, for the key distill.outputs",
                                  told.outputs),
                     option::flag("--overwrite", "replace FILE.h5 if it exists", told.overwrite),
                     option::whole("--worst N",
                                   "also print the N samples with the largest losses, with their "
                                   "targets and predictions",
                                   told.worst, {.min = 0, .max = 10000}),
                     option::path("--worst-output DIR",
                                  "also write these samples to the new directory DIR: "
                                  "worst.jsonl and, of images, PNG files; lockstep serve shows "
                                  "RUN/worst",
                                  told.worst_output),
                     option::flag("--force",
                                  "evaluate even if a plug-in or a library of operators has "
                                  "changed since training, or if the samples do not fit the "
                                  "model's training data",
                                  told.force)},
            .nearest_key = config::nearest_key};
}

Options replay_options(ReplayTold& told) {
    return {
        .command = "lockstep replay",
        .positions = {"RUN", 1, 1},
        .about = "Does steps of a run again, from the newest checkpoint before them, and "
                 "compares the weights with those that the run has recorded "
                 "(monitor.weight-hash). Works on any number of ranks, and while the run "
                 "trains; nothing in RUN is changed. Exits with 0 if the recorded weights came "
                 "out, 1 if other weights did.",
        .rows = {option::whole("--step N", "the last step to do again, from 1", told.options.step),
                 option::path("--dump FILE.h5",
                              "write the samples, the losses of the replicas, the norms of the "
                              "gradients and the values of all operators of that step",
                              told.options.dump),
                 option::flag("--overwrite", "replace FILE.h5 if it exists", told.overwrite),
                 option::flag("--until-nonfinite",
                              "look for the first value that is not finite, and name its "
                              "operator, replica and sample; exits with 1 if there is none up "
                              "to step N, or to the end of the run",
                              told.options.until_nonfinite)},
        .exclusive = {"--dump", "--until-nonfinite"},
        .nearest_key = config::nearest_key};
}

Options bisect_options(NothingTold& /*told*/) {
    return {.command = "lockstep bisect",
            .positions = {"RUN RUN", 2, 2},
            .about = "Finds the first step after which two runs have other weights: by the hashes "
                     "that they have recorded (monitor.weight-hash), and by doing the steps "
                     "between again. Prints which samples, operators, losses and gradients of that "
                     "step differ, and what differs in decks, versions, processors and threads. "
                     "The runs may have had different numbers of ranks. Exits with 0 if they do "
                     "not differ, 1 if they do.",
            .rows = {},
            .nearest_key = config::nearest_key};
}

Options predict_options(PredictTold& told) {
    return {.command = "lockstep predict",
            .positions = {"CHECKPOINT|RUN INPUT...", 2, std::numeric_limits<std::size_t>::max()},
            .about =
                "Writes what a model says of samples without targets. INPUT is HDF5 files; or "
                "pictures, recordings or directories of them; or a CSV table whose columns have "
                "the names of the training's. All else, such as sizes, columns, mean and class "
                "names, is in the model's file. If RUN is given, the run's best.h5 or, if the run "
                "has none, its newest checkpoint is used. The predictions are bitwise identical "
                "on any number of ranks.",
            .rows = {option::required(option::path(
                         "--output FILE",
                         "file to write: .csv or .jsonl (a line for each sample), or .h5",
                         told.output)),
                     option::whole("--batch N", "samples that are computed together", told.batch,
                                   {.max = 1 << 20}),
                     option::flag("--skip-bad",
                                  "skip pictures, recordings and lines of a table that cannot be "
                                  "read, and list them",
                                  told.skip_bad),
                     option::flag("--center-crop",
                                  "keep the proportions of pictures, and cut off what is too much; "
                                  "for models whose pictures were imported with --center-crop",
                                  told.center_crop),
                     option::whole("--shorter N", "with --center-crop: as in the import",
                                   told.shorter, {.min = 1, .max = 16384}),
                     option::one_of("--alpha", {"drop", "blend"},
                                    "what to do with transparent pixels of pictures, as in the "
                                    "import; models whose pictures have alpha get it",
                                    told.alpha),
                     option::flag("--overwrite", "replace FILE if it exists", told.overwrite)},
            .nearest_key = config::nearest_key};
}

Options generate_options(train::GenerateOptions& told) {
    return {
        .command = "lockstep generate",
        .positions = {"[DECK] CHECKPOINT|RUN", 1, 2},
        .about = "Continues a text with a language model, token by token. The tokenizer is the one "
                 "that the model was trained with. Without DECK, the deck in the checkpoint "
                 "counts. The same seed gives the same text.",
        .rows = {option::text("--prompt TEXT",
                              "beginning of the text; default: empty, which starts a new document",
                              told.prompt),
                 option::whole("--tokens N", "number of tokens to add", told.tokens),
                 option::real("--temperature T",
                              "temperature of the draws; below 1: probable tokens are drawn more "
                              "often; 0: the most probable token is always chosen",
                              told.temperature, {.min = 0}),
                 option::whole("--top-k N",
                               "draw only from the N most probable tokens; 0: draw from all tokens",
                               told.top_k, {.min = 0}),
                 option::whole("--seed N", "random seed", told.seed, {.min = 0})},
        .nearest_key = config::nearest_key};
}

Options quantise_options(train::QuantiseOptions& told) {
    return {
        .command = "lockstep checkpoint quantise",
        .positions = {"FILE|RUN OUT", 2, 2},
        .about =
            "Writes a model with int8 weights, which lockstep evaluate runs in int8 on CPUs. The "
            "ranges of the layers' inputs are calibrated with samples of --data.train FILE. "
            "--section.key VALUE changes a key of the model's deck. If RUN is given, the model of "
            "the run's newest checkpoint is quantised; for the run's best model, name RUN/best.h5.",
        .rows =
            {option::whole("--samples N", "number of samples to calibrate with", told.samples),
             option::one_of(
                 "--method", {"minmax", "percentile", "mse"},
                 "range of a layer's inputs; minmax: the range of all values; percentile: the "
                 "range of 99.99 % of the values; mse: the range with the smallest squared error",
                 told.method),
             option::flag("--overwrite", "replace OUT if it exists", told.overwrite)},
        .nearest_key = config::nearest_key};
}

Options bench_step_options(BenchStepTold& told) {
    return {.command = "lockstep bench step",
            .about =
                "Measures a training step with AdamW on random images, with one replica per rank. "
                "Each step has new images. The time of a step is the mean over all ranks.",
            .rows = {option::one_of("--model", {"mlp18m", "cnn"},
                                    "model to train, described in docs/performance.md", told.model),
                     option::one_of("--variant", {"engine", "native", "dp", "alone", "bare"},
                                    "engine: as in training; native: with communication.reduction "
                                    "= native; dp: with two replicas on threads; alone: each rank "
                                    "trains by itself, without communication; bare: as alone, but "
                                    "with a plain LibTorch loop and LibTorch's AdamW",
                                    told.variant),
                     option::whole("--batch N", "samples per replica", told.batch),
                     option::whole("--steps N", "number of steps to measure", told.steps),
                     option::flag("--json", "print one line of JSON", told.json)}};
}

Options export_check_options(ExportCheckTold& told) {
    return {
        .command = "lockstep export check",
        .positions = {"FILE", 1, 1},
        .about = "Runs FILE, an ONNX or C file written by lockstep checkpoint export, and the "
                 "checkpoint from which FILE was exported, on the same samples. Exits with 1 if "
                 "their outputs differ by more than the tolerance. C files are compiled with cc; "
                 "ONNX files need a python3 that has the package onnxruntime.",
        .rows = {option::required(option::text(
                     "--data SET",
                     "data set to take samples from, written as for the key data.test", told.data)),
                 option::whole("--samples N", "number of samples", told.samples),
                 option::path("--checkpoint FILE",
                              "checkpoint to compare with; default: the checkpoint that FILE names",
                              told.checkpoint),
                 option::real("--tolerance D",
                              "largest allowed value of |difference| / (1 + |output|); default: "
                              "1e-5, but for int8 models |difference| may be up to 1/255 of the "
                              "range of all outputs",
                              told.tolerance)},
        .nearest_key = config::nearest_key};
}

Options models_options(NothingTold&) {
    return {.command = "lockstep models",
            .positions = {"[NAME]", 0, 1},
            .about =
                "Lists the models that model.name can name, with their keys. The Python module "
                "lockstep_builtin makes most of them in PyTorch, also with a compiled step."};
}

Options tasks_options(NothingTold&) {
    return {.command = "lockstep tasks",
            .positions = {"[NAME]", 0, 1},
            .about = "Lists the tasks that task.kind can name, with their keys."};
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

std::string predict_help(HelpWords const&) {
    return help_of(predict_options);
}

std::string generate_help(HelpWords const&) {
    return help_of(generate_options);
}

std::string replay_help(HelpWords const&) {
    return help_of(replay_options);
}

std::string bisect_help(HelpWords const&) {
    return help_of(bisect_options);
}

std::string bench_step_help(HelpWords const&) {
    return help_of(bench_step_options);
}

std::string export_check_help(HelpWords const&) {
    return help_of(export_check_options);
}

std::string models_help(HelpWords const&) {
    return help_of(models_options);
}

std::string tasks_help(HelpWords const&) {
    return help_of(tasks_options);
}

} // namespace lockstep::app
