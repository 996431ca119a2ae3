#include "nn/named_code.hpp"

#include "base/file_hash.hpp"
#include "base/hash.hpp"
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

std::map<std::string, std::string> code_hashes(config::Deck const& deck) {
    std::map<std::string, std::string> hashes;
    for (auto const& [key, value] : named_code(deck)) {
        if (!names_plugin(value)) {
            std::vector<std::string> each;
            for (auto const& file : operator_libraries(value)) {
                each.push_back(hex(whole_hash(file)));
            }
            hashes[key] = joined(each, ", ");
        } else if (auto const file = library_of(key, value); file != "self") {
            hashes[key] = hex(whole_hash(file));
        }
    }
    return hashes;
}

} // namespace lockstep::nn
