#include "base/code_place.hpp"

#include "base/text.hpp"

#include <filesystem>

namespace lockstep {

std::string code_place(std::source_location const& at) {
    return concat(std::filesystem::path(at.file_name()).filename().string(), ":", at.line());
}

} // namespace lockstep
