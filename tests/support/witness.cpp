// Preloaded into a program, this tells at its end, in lines "witness: ...", whose functions it
// found, and what of the process was changed since its start by others than MPI's start and end:
// variables of the environment, what signals do, limits, and the allocator. It is linked with -z
// initfirst.

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

namespace {

using Facts = std::map<std::string, std::string>;

std::atomic<int> allocator_calls{0};

void add_variables(Facts& facts, std::string const& variable) {
    auto const name = variable.substr(0, variable.find('='));
    facts["variable " + name] = variable.substr(std::min(name.size() + 1, variable.size()));
}

/// What this process was started with, whatever has run since.
Facts variables_at_start() {
    Facts facts;
    if (auto* const file = std::fopen("/proc/self/environ", "rb")) {
        std::string variable;
        for (int letter = std::fgetc(file); letter != EOF; letter = std::fgetc(file)) {
            if (letter != 0) {
                variable += static_cast<char>(letter);
                continue;
            }
            add_variables(facts, variable);
            variable.clear();
        }
        static_cast<void>(std::fclose(file));
    }
    return facts;
}

Facts variables_now() {
    Facts facts;
    for (char** variable = environ; *variable != nullptr; ++variable) {
        add_variables(facts, *variable);
    }
    return facts;
}

Facts with_rest(Facts facts) {
    for (int number = 1; number < NSIG; ++number) {
        struct sigaction action {};
        if (::sigaction(number, nullptr, &action) == 0) {
            std::array<char, 32> address{};
            static_cast<void>(std::snprintf(address.data(), address.size(), "%p",
                                            reinterpret_cast<void*>(action.sa_handler)));
            facts["signal " + std::to_string(number)] = address.data();
        }
    }
    for (int resource = 0; resource < RLIMIT_NLIMITS; ++resource) {
        rlimit limit{};
        if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) == 0) {
            facts["limit " + std::to_string(resource)] =
                std::to_string(limit.rlim_cur) + ":" + std::to_string(limit.rlim_max);
        }
    }
    return facts;
}

std::string value_of(Facts const& facts, std::string const& name) {
    auto const found = facts.find(name);
    return found == facts.end() ? "none" : found->second;
}

struct Witness {
    Witness() = default;
    Witness(Witness const&) = delete;
    Witness& operator=(Witness const&) = delete;

    ~Witness() {
        for (char const* const name :
             {"_exit", "on_exit", "MPI_File_write_at", "MPI_File_write_at_all", "MPI_File_read_at",
              "MPI_File_read_at_all", "MPI_File_sync", "PMPI_File_write_at_all"}) {
            Dl_info place{};
            auto* const function = ::dlsym(RTLD_DEFAULT, name);
            bool const found = function != nullptr && ::dladdr(function, &place) != 0;
            std::printf("witness: %s is of %s\n", name,
                        found ? ::basename(place.dli_fname) : "none");
        }
        tell_changes("before main", before_main);
        tell_changes("at the end", with_rest(variables_now()));
        std::printf("witness: %d calls of mallopt\n", allocator_calls.load());
        static_cast<void>(std::fflush(stdout));
    }

    void tell_changes(char const* when, Facts const& now) const {
        Facts all = start;
        all.insert(now.begin(), now.end());
        for (auto const& [name, unused] : all) {
            auto const value = value_of(now, name);
            auto const of_mpi = mpi.find(name);
            if (value != value_of(start, name) &&
                (of_mpi == mpi.end() || value != of_mpi->second)) {
                std::printf("witness: %s, %s is changed from %s to %s\n", when, name.c_str(),
                            value_of(start, name).c_str(), value.c_str());
            }
        }
    }

    Facts start = with_rest(variables_at_start());
    Facts before_main;
    Facts mpi; ///< what MPI changed, and what it changed it to
};

Witness& witness() {
    static Witness one;
    return one;
}

template <class Call>
int noting(Call const& call) {
    auto const before = with_rest(variables_now());
    int const code = call();
    auto const after = with_rest(variables_now());
    Facts all = before;
    all.insert(after.begin(), after.end());
    for (auto const& [name, unused] : all) {
        if (value_of(before, name) != value_of(after, name)) {
            witness().mpi[name] = value_of(after, name);
        }
    }
    return code;
}

/// Before the static objects of all other libraries.
struct Begin {
    Begin() { witness(); }
} const begin;

using Main = int (*)(int, char**, char**);
Main real_main = nullptr;

int observed_main(int argc, char** argv, char** variables) {
    witness().before_main = with_rest(variables_now());
    return real_main(argc, argv, variables);
}

} // namespace

extern "C" {

int __libc_start_main(Main main, int argc, char** argv, void (*init)(), void (*fini)(), // NOLINT
                      void (*rtld_fini)(), void* stack_end) {
    real_main = main;
    using Start = int(Main, int, char**, void (*)(), void (*)(), void (*)(), void*);
    auto* const real = reinterpret_cast<Start*>(::dlsym(RTLD_NEXT, "__libc_start_main"));
    return real(observed_main, argc, argv, init, fini, rtld_fini, stack_end);
}

int mallopt(int parameter, int value) {
    ++allocator_calls;
    auto* const real = reinterpret_cast<int (*)(int, int)>(::dlsym(RTLD_NEXT, "mallopt"));
    return real(parameter, value);
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
    return noting([&] { return PMPI_Init_thread(argc, argv, required, provided); });
}

int MPI_Finalize() {
    return noting([] { return PMPI_Finalize(); });
}
}
