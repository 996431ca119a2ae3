#include "comm/collective_library.hpp"

#include "base/text.hpp"
#include "comm/nccl.hpp"
#include "comm/oneccl.hpp"

namespace lockstep::comm {

std::vector<CollectiveLibrary const*> collective_libraries() {
    std::vector<CollectiveLibrary const*> found;
    for (auto const* const library : {nccl_library(), oneccl_library()}) {
        if (library != nullptr) {
            found.push_back(library);
        }
    }
    return found;
}

CollectiveLibrary const* collective_library(std::string_view kind) {
    for (auto const* const library : collective_libraries()) {
        if (library->serves(kind)) {
            return library;
        }
    }
    return nullptr;
}

std::string collective_libraries_text() {
    std::string text;
    for (auto const* const library : collective_libraries()) {
        text += concat(text.empty() ? "" : ", ", library->name(), " ", library->version());
    }
    return text.empty() ? "no NCCL" : text;
}

} // namespace lockstep::comm
