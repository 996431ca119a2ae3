#include "checkpoint/noted_keys.hpp"

#include "base/json_text.hpp"
#include "lockstep/base/error.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace lockstep::checkpoint {

std::map<std::string, std::string> noted_keys(Record const& record,
                                              std::filesystem::path const& file) {
    auto const note = record.notes.find(model_note);
    if (note == record.notes.end()) {
        return {};
    }
    auto const json = json_or_nothing(note->second);
    auto const is_text = [](auto const& each) { return each.is_string(); };
    bool is_ours =
        json.is_object() && json.contains("model.name") && std::ranges::all_of(json, is_text);
    std::map<std::string, std::string> keys;
    if (is_ours) {
        json.get_to(keys);
        is_ours = std::ranges::all_of(keys, [](auto const& each) {
            auto const section = each.first.substr(0, each.first.find('.'));
            return section == "model" || section == "task" || section == "data";
        });
    }
    if (!is_ours) {
        throw Error(ExitCode::data,
                    {file.string(), "what it says of its model (lockstep_model) cannot be read",
                     "Copy the file again from its source, or name another"});
    }
    return keys;
}

} // namespace lockstep::checkpoint
