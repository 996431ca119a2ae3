#include "nn/program_records.hpp"

#include "program/archive.hpp"

namespace lockstep::nn {

void for_records(std::filesystem::path const& file,
                 std::function<void(std::string const&, std::string_view)> const& take) {
    program::Archive const archive(file);
    for (auto const& name : archive.records()) {
        // Of the archive itself, which is written again when a step is compiled.
        bool const is_frame =
            name.starts_with(".data/") || name == "version" || name == "byteorder";
        if (!is_frame && !name.starts_with("data/lockstep/")) {
            take(name, archive.text(name));
        }
    }
}

} // namespace lockstep::nn
