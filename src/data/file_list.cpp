#include "base/list.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/data/dataset.hpp"

#include <glob.h>

namespace lockstep::data {

std::vector<std::filesystem::path> expand_files(std::string const& files) {
    std::vector<std::filesystem::path> paths;
    for (auto const& [part, quoted] : list_entries(files)) {
        if (part.empty()) {
            throw Error(ExitCode::usage,
                        {concat("the list of files ", files), "one of its names is empty",
                         "Remove the surplus comma, or add the missing file name"});
        }
        std::error_code none; // a file of that very name comes before a pattern
        if (quoted || part.find_first_of("*?[") == std::string::npos ||
            std::filesystem::exists(part, none)) {
            if (std::filesystem::is_directory(part, none)) {
                throw Error(ExitCode::no_input,
                            {concat("cannot open ", part), "it is a directory",
                             "Name a data set file, or those in it (DIRECTORY/*.h5); pictures, "
                             "tables or recordings become one with lockstep data import"});
            }
            paths.emplace_back(part);
            continue;
        }
        glob_t found{};
        // NOLINTNEXTLINE(concurrency-mt-unsafe): of a name that is opened by one thread
        if (::glob(part.c_str(), 0, nullptr, &found) == 0) {
            paths.insert(paths.end(), found.gl_pathv, found.gl_pathv + found.gl_pathc);
        } else {
            ::globfree(&found);
            throw Error(ExitCode::no_input,
                        {concat("no file matches ", part), "there is nothing to read",
                         "Correct the path in section [data] of the deck"});
        }
        ::globfree(&found);
    }
    return paths;
}

} // namespace lockstep::data
