#include "nn/named_code.hpp"

#include "base/file_hash.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "nn/find_kind.hpp"

#include "operator_libraries.hpp"

namespace lockstep::nn {

namespace {

constexpr char const* compiled_key = "compiled";

/// Empty where the deck does not set it.
std::string own_value(config::Model const& model, char const* key) {
    auto const found = model.own.find(key);
    bool const is_set = found != model.own.end() && !trimmed(found->second).empty();
    return is_set ? found->second : std::string();
}

} // namespace

std::map<std::string, std::string> named_code(config::Deck const& deck) {
    std::map<std::string, std::string> code;
    for (auto const& [key, value] :
         {std::pair{"model.name", deck.model.name}, {"task.kind", deck.task.kind}}) {
        if (names_plugin(value)) {
            code[key] = value;
        }
    }
    auto const add = [&](char const* key) {
        if (auto const value = own_value(deck.model, key); !value.empty()) {
            code[concat("model.", key)] = value;
        }
    };
    if (deck.model.name == "export") {
        add(operators_key);
        auto const compiled = own_value(deck.model, compiled_key);
        if (!compiled.empty() && trimmed(compiled) != "none") {
            add(compiled_key);
            add("file");
        }
    }
    return code;
}

std::map<std::string, std::string> named_scripts(config::Deck const& deck) {
    std::map<std::string, std::string> scripts;
    if (auto const file = own_value(deck.model, "file");
        deck.model.name == "script" && !file.empty()) {
        scripts["model.file"] = file;
    }
    if (deck.distill.teacher.ends_with(".pt")) {
        scripts["distill.teacher"] = deck.distill.teacher;
    }
    return scripts;
}

config::Model without_compiled_step(config::Model model) {
    if (model.own.contains(compiled_key)) {
        model.own[compiled_key] = "none";
    }
    return model;
}

std::map<std::string, std::vector<std::string>> code_files(config::Deck const& deck) {
    std::map<std::string, std::vector<std::string>> files;
    for (auto const& [key, value] : named_code(deck)) {
        if (key == concat("model.", operators_key)) {
            files[key] = operator_libraries(value);
        } else if (names_plugin(value)) {
            if (auto const file = library_of(key, value); file != "self") {
                files[key] = {file};
            }
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
