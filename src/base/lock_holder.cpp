#include "base/lock_holder.hpp"

#include "base/number.hpp"
#include "base/text.hpp"

#include <fstream>
#include <sstream>
#include <sys/stat.h>

namespace lockstep {

namespace {

// "1: FLOCK  ADVISORY  WRITE 4711 08:01:393226 0 EOF". Some file systems have another device there
// than stat tells, so the inode alone has to do.
int process_with(std::filesystem::path const& file) {
    struct stat info {};
    if (::lstat(file.c_str(), &info) != 0) {
        return 0;
    }
    auto const inode = concat(":", info.st_ino);
    std::ifstream locks("/proc/locks");
    for (std::string line; std::getline(locks, line);) {
        std::istringstream words(line);
        std::string number;
        std::string kind;
        std::string how;
        std::string access;
        std::string process;
        std::string place;
        words >> number >> kind >> how >> access >> process >> place;
        if (kind == "FLOCK" && place.ends_with(inode)) {
            return number_of<int>(process).value_or(0);
        }
    }
    return 0;
}

} // namespace

LockHolder lock_holder(std::filesystem::path const& file) {
    int const process = process_with(file);
    if (process <= 0) { // of another host, or another container
        return {.text = concat("another process holds the lock ", file.string(), " (fuser -v ",
                               file.string(), " on its host shows which)"),
                .process = 0};
    }
    std::string name;
    std::getline(std::ifstream(concat("/proc/", process, "/comm")), name);
    std::erase_if(name, [](unsigned char letter) { return letter < ' ' || letter > '~'; });
    return {.text = concat("process ", process, name.empty() ? "" : concat(" (", name, ")"),
                           " holds the lock ", file.string()),
            .process = process};
}

} // namespace lockstep
