#include "checkpoint/layout.hpp"

#include "base/json_text.hpp"
#include "h5/element_type.hpp"

#include <nlohmann/json.hpp>

#include "damage.hpp"
#include "parsing.hpp"

namespace lockstep::checkpoint {

namespace {

using Json = nlohmann::json;

} // namespace

std::string layout_text(std::vector<Array> const& arrays, std::vector<h5::View> const& views) {
    auto layout = Json{{"arrays", Json::array()}, {"views", Json::array()}};
    for (auto const& array : arrays) {
        layout["arrays"].push_back({{"name", array.name},
                                    {"type", h5::name_of(array.type)},
                                    {"elements", array.elements}});
    }
    for (auto const& view : views) {
        layout["views"].push_back({{"path", view.path},
                                   {"source", view.source},
                                   {"first", view.first},
                                   {"shape", view.shape}});
    }
    return layout.dump(1);
}

void read_layout(std::string const& text, std::filesystem::path const& path,
                 std::vector<Array>& arrays, std::vector<h5::View>& views) {
    parsing(path, [&] {
        auto const layout = parsed_json(
            text, [&](std::string const& why) { throw not_ours(path, concat("its JSON ", why)); });
        for (auto const& entry : layout.at("arrays")) {
            auto const type = h5::type_named(entry.at("type").get<std::string>());
            if (!type) {
                throw not_ours(path, "one of its arrays has an unknown type");
            }
            arrays.push_back({entry.at("name").get<std::string>(), *type,
                              entry.at("elements").get<std::uint64_t>()});
        }
        for (auto const& entry : layout.at("views")) {
            views.push_back(
                {entry.at("path").get<std::string>(), entry.at("source").get<std::string>(),
                 entry.at("first").get<std::uint64_t>(), entry.at("shape").get<h5::Shape>()});
        }
    });
}

} // namespace lockstep::checkpoint
