#include "commands.hpp"
#include "train_side_options.hpp"

namespace lockstep::app {

std::vector<Command> all_commands() {
    return {
        {"train", train_front_command, train_help,
         "DECK... [--section.key VALUE]... [--force] [--quiet | --verbose | --json]",
         "trains a deck, or resumes its run"},
        {"launch", launch_command, launch_help,
         "[--yes] [DECK]... [--devices N] [--restarts N] [--submit slurm|pbs]",
         "trains with one rank per device of this host or job; asks for what is missing, restarts "
         "after the loss of a rank"},
        {"probe", probe_command, probe_help, "[DIRECTORY] [--reach HOST,HOST]",
         "tests this host, as launch does after a loss"},
        {"search", search_command, search_help,
         "SPACE.ini [DECK]... | report DIR | suggest SPACE.ini | tell DIR TRIAL VALUE...",
         "trains many trials of a deck on parts of the ranks, and finds the best values of its "
         "keys"},
        {"plan", [](Invocation const& i) { return train_side_command("plan", i); }, plan_help,
         "DECK [--ranks N]", "shows what train would do, without training"},
        {"check", [](Invocation const& i) { return train_side_command("check", i); }, check_help,
         "[DECK]",
         "checks whether this machine or allocation is ready to train, and names remedies"},
        {"estimate", [](Invocation const& i) { return train_side_command("estimate", i); },
         estimate_help, "DECK [--price-per-hour P]",
         "measures a step and the network, and predicts training on 1 to 1024 ranks"},
        {"evaluate", [](Invocation const& i) { return train_side_command("evaluate", i); },
         evaluate_help, "[DECK] CHECKPOINT|RUN",
         "evaluates a checkpoint on the test (or validation) set"},
        {"predict", [](Invocation const& i) { return train_side_command("predict", i); },
         predict_help, "CHECKPOINT|RUN INPUT... --output FILE",
         "writes what a model says of samples without targets"},
        {"generate", [](Invocation const& i) { return train_side_command("generate", i); },
         generate_help, "[DECK] CHECKPOINT|RUN [--prompt TEXT]",
         "continues a text with a language model"},
        {"verify-resume", verify_resume_command, verify_resume_help,
         "DECK --ranks A --resume-ranks B --kill-at K --steps N",
         "proves exact resume on this set-up"},
        {"data", data_command, data_help, "import KIND SOURCE OUT | info FILE... | verify FILE...",
         "makes data sets, shows what is in them, verifies them"},
        {"checkpoint", checkpoint_command, checkpoint_help,
         "info FILE|RUN | verify FILE|RUN | diff A B | prune RUN --keep N | export FILE OUT",
         "shows, verifies, compares and prunes checkpoints; exports the model to other formats"},
        {"export", export_command, export_help, "check FILE --data SET",
         "runs an exported model and compares it with the checkpoint that it was made from"},
        {"bench", bench_command, bench_help, "allreduce | step | loader | checkpoint",
         "measures the all-reduce, the training step, the loader, checkpoints"},
        {"federate", federate_command, federate_help, "init | join | round | info | simulate",
         "trains across sites that share no data: ordinary jobs exchange files"},
        {"report", report_command, report_help,
         "RUN... [--output DIRECTORY] [--format png,pdf,svg] [--price-per-hour P] "
         "[--carbon-intensity G]",
         "draws pictures of runs, and a table that compares them"},
        {"watch", watch_command, watch_help, "RUN [--once]",
         "shows what a run is doing, or has done"},
        {"profile", profile_command, profile_help, "RUN [--steps N] [--wait SECONDS]",
         "asks a running job for a timeline of its next steps"},
        {"serve", serve_command, serve_help,
         "RUN|DIRECTORY... [--port N | --socket FILE] [--carbon-intensity G]",
         "shows runs in the browser, live"},
        {"complete", complete_command, complete_help, "[--] WORD...",
         "prints what can stand at the end of a command line, for the completion of shells"},
        {"models", [](Invocation const& i) { return train_side_command("models", i); }, models_help,
         "[NAME]", "lists the models that model.name can name, with their keys"},
        {"tasks", [](Invocation const& i) { return train_side_command("tasks", i); }, tasks_help,
         "[NAME]", "lists the tasks that task.kind can name, with their keys"},
    };
}

} // namespace lockstep::app
