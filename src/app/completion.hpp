#pragma once

#include <string>
#include <vector>

namespace lockstep::app {

/// A word that can stand at the end of a command line.
struct Candidate {
    std::string text;
    std::string meaning{};
};

/// All that can.
struct Completion {
    std::vector<Candidate> candidates{};
    bool files = false; ///< the shell adds the names of files
};

/// What can complete the last of `words`, the words behind the program's name; the last one may be
/// empty. A shell that parts words at "=" gives that as a word of its own.
Completion completion_of(std::vector<std::string> words);

} // namespace lockstep::app
