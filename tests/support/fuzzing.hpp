#pragma once

#include "base/random.hpp"
#include "lockstep/base/error.hpp"

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lockstep::test {

/// What became of a damaged file.
enum class Outcome { right = 10, refused = 11, wrong = 12, other = 13 };

inline std::uint64_t setting(char const* name, std::uint64_t otherwise) {
    auto const* const text = std::getenv(name);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

inline std::uint64_t fuzz_inputs(std::uint64_t otherwise) {
    return setting("LOCKSTEP_FUZZ_INPUTS", otherwise);
}
inline std::uint64_t fuzz_seed() {
    return setting("LOCKSTEP_FUZZ_SEED", 1);
}

/// Does the work in a process of its own, since HDF5 reads its own metadata: an outcome, or the
/// signal that ended it. An error that is not the file's fault is `other`.
inline int outcome_of(std::function<Outcome()> const& work) {
    auto const child = ::fork();
    if (child == 0) {
        ::alarm(20); // a hang is a death too
        rlimit const memory{std::size_t{4} << 30, std::size_t{4} << 30};
        ::setrlimit(RLIMIT_AS, &memory);
        auto outcome = Outcome::other;
        try {
            outcome = work();
        } catch (Error const& error) {
            // The damage may have hit the name of a column that the caller asks for.
            bool const ours =
                error.code() == ExitCode::data || error.code() == ExitCode::no_input ||
                std::string_view(error.what()).find("has no such column") != std::string_view::npos;
            outcome = ours ? Outcome::refused : Outcome::other;
            if (!ours) {
                std::cerr << error.what() << std::endl;
            }
        } catch (std::exception const& error) {
            std::cerr << error.what() << std::endl;
        }
        ::_exit(static_cast<int>(outcome));
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/// Some bytes changed, a part taken out or doubled, or the end cut off.
inline std::string damaged(std::string bytes, std::uint64_t key) {
    auto const dice = [&](std::uint64_t max) { return (key = mixed(key)) % max; };
    for (auto left = dice(4) + 1; left > 0 && !bytes.empty(); --left) {
        auto const at = dice(bytes.size());
        auto const few = dice(8) + 1;
        switch (dice(6)) {
        case 0:
            bytes.resize(at);
            break;
        case 1:
            bytes.erase(at, few);
            break;
        case 2:
            bytes.insert(at, bytes.substr(at, few));
            break;
        case 3:
            bytes[at] = "\0\xff\x7f\x80,\"\n\t0-.e"[dice(12)];
            break;
        default:
            bytes[at] = static_cast<char>(bytes[at] ^ static_cast<char>(1 << dice(8)));
        }
    }
    return bytes;
}

} // namespace lockstep::test
