#include "app/command.hpp"
#include "base/arrival.hpp"
#include "base/build_id.hpp"
#include "base/escaped.hpp"
#include "base/host_facts.hpp"
#include "base/memory.hpp"
#include "base/suggestion.hpp"
#include "base/text.hpp"
#include "lockstep/app/own_process.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/base/signals.hpp"
#include "lockstep/build_id_value.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string_view>
#include <unistd.h>

#include "build_info.hpp"
#include "commands.hpp"
#include "train_side_options.hpp"

namespace {

using namespace lockstep;
using namespace lockstep::app;

std::vector<Command> commands() {
    return {
        {"train", train_front_command, train_help,
         "DECK... [--section.key VALUE]... [--force] [--quiet | --verbose | --json]",
         "trains a deck, or resumes its run"},
        {"launch", launch_command, launch_help,
         "[--yes] [DECK]... [--devices N] [--restarts N] [--submit slurm|pbs]",
         "trains with one rank per device of this host or job; asks for what is missing, restarts "
         "after the loss of a rank"},
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
         evaluate_help, "DECK CHECKPOINT|RUN",
         "evaluates a checkpoint on the test (or validation) set"},
        {"predict", [](Invocation const& i) { return train_side_command("predict", i); },
         predict_help, "CHECKPOINT|RUN INPUT... --output FILE",
         "writes what a model says of samples without targets"},
        {"generate", [](Invocation const& i) { return train_side_command("generate", i); },
         generate_help, "DECK CHECKPOINT|RUN [--prompt TEXT]",
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
        {"models", [](Invocation const& i) { return train_side_command("models", i); }, models_help,
         "[NAME]", "lists the models that model.name can name, with their keys"},
        {"tasks", [](Invocation const& i) { return train_side_command("tasks", i); }, tasks_help,
         "[NAME]", "lists the tasks that task.kind can name, with their keys"},
    };
}

void print_help() {
    std::cout << "lockstep " << build::version << ": distributed training, exact on any number of "
              << "ranks\n\nUsage: [mpirun -n RANKS] lockstep COMMAND ...\n\n";
    for (auto const& command : commands()) {
        std::cout << "  " << command.name << (command.usage.empty() ? "" : " ") << command.usage
                  << "\n      " << command.meaning << "\n";
    }
    std::cout << "\nFor details, see lockstep COMMAND --help.\n";
}

/// Libraries look for what they load from where they are, and name other causes.
void require_working_directory() {
    std::error_code failure;
    static_cast<void>(std::filesystem::current_path(failure));
    if (failure) {
        throw Error(ExitCode::no_input,
                    {"the working directory cannot be used",
                     concat("it was removed or unmounted (", failure.message(), ")"),
                     "Change to a directory that exists"});
    }
}

ExitCode dispatch(int argc, char** argv) {
    std::vector<std::string> arguments(argv + 1, argv + argc);
    std::replace(arguments.begin(), arguments.end(), std::string("-h"), std::string("--help"));
    if (arguments.size() == 2 && arguments[0] == "help") {
        arguments = {arguments[1], "--help"};
    }
    if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "help") {
        print_help();
        return arguments.empty() ? ExitCode::usage : ExitCode::ok;
    }
    if (arguments[0] == "--version") {
        std::cout << "lockstep " << build::version << "\n";
        return ExitCode::ok;
    }
    std::vector<std::string> names;
    for (auto const& command : commands()) {
        names.push_back(command.name);
        if (command.name == arguments[0]) {
            arguments.erase(arguments.begin());
            if (std::erase(arguments, "--help") > 0) {
                std::cout << command.help(arguments);
                return ExitCode::ok;
            }
            require_working_directory();
            return command.run({arguments, argc, argv});
        }
    }
    throw Error(ExitCode::usage, {concat("unknown command ", arguments[0]),
                                  concat("the commands are ", list_text(names)),
                                  suggestion(arguments[0], names, "See lockstep --help")});
}

/// Where memory is used up an exception may leave a function that lets none out, or a thread: no
/// crash, but a word and the code of it. What else gets here is a bug, and leaves a core.
[[noreturn]] void end_without_memory() noexcept {
    release_reserve();
    std::set_terminate([] { // not even for the word
        constexpr std::string_view text =
            "lockstep: root cause: out of memory: no memory was left for this process. Ask for "
            "more memory, or raise the limits on memory (ulimit -d, -v)\n";
        static_cast<void>(!::write(STDERR_FILENO, text.data(), text.size()));
        std::_Exit(static_cast<int>(ExitCode::memory));
    });
    try {
        if (std::current_exception() != nullptr) {
            std::rethrow_exception(std::current_exception());
        }
    } catch (...) {
        auto const error = current_error();
        if (error.code() == ExitCode::memory) {
            auto const rank = launched_ranks() > 1 ? concat("rank ", launched_rank(), ": ") : "";
            std::cerr << concat("lockstep: root cause: ", rank, error.what(), "\n") << std::flush;
            std::_Exit(static_cast<int>(error.code()));
        }
    }
    std::abort();
}

/// Everything that is written was closed, and MPI has ended. What would come now, a hundred
/// milliseconds of LibTorch taking its tables of operators apart, is the kernel's to free.
[[noreturn]] void leave(ExitCode code) {
    std::cout.flush();
    static_cast<void>(std::fflush(nullptr));
    std::_Exit(static_cast<int>(code));
}

} // namespace

int main(int argc, char** argv) {
    own_process();
    reset_signals();
    // Names and texts of files are shown, and not obeyed.
    EscapedStream const output(std::cout);
    EscapedStream const errors(std::cerr);
    // A file beyond the limit on file sizes is then an error with a reason: "File too large".
    static_cast<void>(std::signal(SIGXFSZ, SIG_IGN));
    std::set_terminate(end_without_memory);
    try {
        require_same_build("liblockstep_core", core_build_id(), LOCKSTEP_BUILD_ID);
        auto const code = dispatch(argc, argv);
        if (code == ExitCode::ok && !std::cout.flush()) {
            throw Error(ExitCode::io,
                        {"cannot write to standard output", "not all of the output was written",
                         "Check the free space of the disk, or the program that reads this output "
                         "through a pipe"});
        }
        leave(code);
    } catch (...) {
        auto const error = current_error();
        // Where a launcher has started several, this may be so on one host alone.
        auto const who = launched_ranks() > 1 && error.code() != ExitCode::usage
                             ? concat("root cause: rank ", launched_rank(), " (", own_host(), "): ")
                             : std::string();
        std::cerr << concat("lockstep: ", who, error.what(), "\n") << std::flush;
        leave(error.code());
    }
}
