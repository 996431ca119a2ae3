#include "lockstep/base/build_id.hpp"
#include "lockstep/base/text.hpp"

#include <dlfcn.h>

#include "build_id.hpp"
#include "command.hpp"

namespace lockstep::app {

namespace {
constexpr char const* train_library = LOCKSTEP_TRAIN_LIBRARY;
}

ExitCode train_side_command(std::string const& name, Invocation const& invocation) {
    // Beside the program in a build, in ../lib when it is installed; found through the run path.
    void* const library = ::dlopen(train_library, RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) {
        throw Error(ExitCode::unavailable, {concat("cannot load ", train_library), ::dlerror(),
                                            "Build the program again, or check LibTorch"});
    }
    // Functions of two builds would call each other with different layouts, and compute nonsense.
    auto const* const trainer =
        static_cast<char const* const*>(::dlsym(library, "lockstep_trainer_build_id"));
    if (trainer == nullptr || std::string_view(*trainer) != LOCKSTEP_BUILD_ID) {
        throw Error(ExitCode::unavailable,
                    {concat(train_library, " is of another build than this program"),
                     concat("its build id is ", trainer == nullptr ? "missing" : *trainer,
                            ", the program's ", LOCKSTEP_BUILD_ID),
                     "Build and install the program and its libraries together"});
    }
    using Entry = int (*)(char const*, Invocation const*);
    auto const entry = reinterpret_cast<Entry>(::dlsym(library, "lockstep_train_side"));
    if (entry == nullptr) {
        throw Error(ExitCode::unavailable, {concat(train_library, " does not fit this program"),
                                            ::dlerror(), "Build both again"});
    }
    return static_cast<ExitCode>(entry(name.c_str(), &invocation));
}

} // namespace lockstep::app
