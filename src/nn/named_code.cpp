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

std::map<std::string, std::vector<std::string>> code_files(config::Deck const& deck) {
    std::map<std::string, std::vector<std::string>> files;
    for (auto const& [key, value] : named_code(deck)) {
        if (!names_plugin(value)) {
            files[key] = operator_libraries(value);
        } else if (auto const file = library_of(key, value); file != "self") {
            files[key] = {file};
        }
    }
    return files;
}

std::map<std::string, std::string> code_hashes(config::Deck const& deck) {
    std::map<std::string, std::string> hashes;
    for (auto const& [key, files] : code_files(deck)) {
        std::vector<std::string> each;
        for (auto const& file : files) {
            each.push_back(hex(whole_hash(file)));
        }
        hashes[key] = joined(each, ", ");
    }
    return hashes;
}

} // namespace lockstep::nn
