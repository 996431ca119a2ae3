#include "config/named_files.hpp"

#include "config/describe.hpp"

namespace lockstep::config {

namespace {

struct CollectNames {
    std::map<std::string, Named> found{};

    template <class Value>
    void operator()(char const* key, Value const& /*value*/, Rule const& rule,
                    char const* /*meaning*/) {
        if (rule.names != Named::nothing) {
            found[key] = rule.names;
        }
    }
    void own(char const* /*section*/, OwnKeys const& /*keys*/) {}
};

} // namespace

std::map<std::string, Named> const& keys_of_names() {
    static std::map<std::string, Named> const all = [] {
        CollectNames collect;
        Deck const deck;
        describe(deck, collect);
        // Of models, whose keys have no rules.
        collect.found["model.file"] = Named::model;
        collect.found["model.operators"] = Named::code;
        return std::move(collect.found);
    }();
    return all;
}

Named names_of(std::string const& key) {
    auto const found = keys_of_names().find(key);
    return found == keys_of_names().end() ? Named::nothing : found->second;
}

bool names_contents(std::string const& key) {
    auto const what = names_of(key);
    return what == Named::samples || what == Named::model || what == Named::code;
}

} // namespace lockstep::config
