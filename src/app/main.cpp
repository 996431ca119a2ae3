#include "app/command.hpp"
#include "base/arguments.hpp"
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
#include "commit.hpp"

namespace {

using namespace lockstep;
using namespace lockstep::app;

void print_help() {
    std::cout << paragraph("",
                           concat("lockstep ", build::version,
                                  ": distributed training, exact on any number of ranks"),
                           4)
              << "\nUsage: [mpirun -n RANKS] lockstep COMMAND ...\n\n";
    for (auto const& command : all_commands()) {
        std::cout << paragraph(concat("  ", command.name, command.usage.empty() ? "" : " "),
                               command.usage, 8)
                  << paragraph("      ", command.meaning, 6);
    }
    std::cout << "\nFor details, see lockstep COMMAND --help.\n";
}

/// The release, and the commit that it was built from.
void print_version() {
    std::cout << "lockstep " << build::version << "\n" << commit_text() << "\n";
}

/// Whether the words ask for help; those behind "--" do not.
bool take_help(std::vector<std::string>& words) {
    auto const end = std::ranges::find(words, "--");
    auto const asked =
        std::find_if(words.begin(), end, [](auto const& w) { return w == "--help" || w == "-h"; });
    if (asked == end) {
        return false;
    }
    words.erase(asked);
    return true;
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
    if (arguments.size() == 2 && arguments[0] == "help") {
        arguments = {arguments[1], "--help"};
    }
    if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h" ||
        arguments[0] == "help") {
        print_help();
        return arguments.empty() ? ExitCode::usage : ExitCode::ok;
    }
    if (arguments[0] == "--version") {
        print_version();
        return ExitCode::ok;
    }
    std::vector<std::string> names;
    for (auto const& command : all_commands()) {
        names.push_back(command.name);
        if (command.name == arguments[0]) {
            arguments.erase(arguments.begin());
            if (take_help(arguments)) {
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
