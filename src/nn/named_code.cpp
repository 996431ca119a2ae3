#include "nn/named_code.hpp"

#include "base/text.hpp"
#include "nn/find_kind.hpp"

#include "operator_libraries.hpp"

namespace lockstep::nn {

std::map<std::string, std::string> named_code(config::Deck const& deck) {
    std::map<std::string, std::string> code;
    for (auto const& [key, value] :
         {std::pair{"model.name", deck.model.name}, {"task.kind", deck.task.kind}}) {
        if (names_plugin(value)) {
            code[key] = value;
        }
    }
    auto const libraries = deck.model.own.find(operators_key);
    if (deck.model.name == "export" && libraries != deck.model.own.end() &&
        !trimmed(libraries->second).empty()) {
        code[concat("model.", operators_key)] = libraries->second;
    }
    return code;
}

} // namespace lockstep::nn
