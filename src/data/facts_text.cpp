#include "data/facts_text.hpp"

#include "base/json_text.hpp"
#include "base/some_of.hpp"
#include "base/text.hpp"
#include "data/class_names.hpp"
#include "data/convert.hpp"
#include "data/format.hpp"
#include "h5/element_type.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/h5/storage.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace lockstep::data {

namespace {

using Json = nlohmann::json; // writes the digits that give the same bits again

Json json_of(std::vector<FieldInfo> const& fields) {
    auto all = Json::array();
    for (auto const& field : fields) {
        all.push_back({{"name", field.name},
                       {"type", h5::name_of(field.type)},
                       {"shape", field.shape},
                       {"whole", field.whole},
                       {"ragged", field.ragged},
                       {"vocabulary", field.vocabulary},
                       {"end_of_text", field.end_of_text}});
    }
    return all;
}

/// The JSON library would cut off fractions, and what does not fit the type.
template <class Number>
Number whole_of(Json const& json) {
    if (!json.is_number_integer() || json != json.get<Number>()) {
        throw std::runtime_error(concat(json.dump(), " stands where a whole number should"));
    }
    return json.get<Number>();
}

template <class Number>
std::vector<Number> wholes_of(Json const& json) {
    std::vector<Number> numbers;
    for (auto const& each : json) {
        numbers.push_back(whole_of<Number>(each));
    }
    return numbers;
}

std::vector<FieldInfo> fields_of(Json const& json) {
    std::vector<FieldInfo> fields;
    for (auto const& each : json) {
        auto const type = h5::type_named(each.at("type"));
        fields.push_back({.name = each.at("name"),
                          .type = type.value(),
                          .shape = wholes_of<std::uint64_t>(each.at("shape")),
                          .whole = each.at("whole"),
                          .ragged = each.at("ragged"),
                          .vocabulary = whole_of<std::int64_t>(each.at("vocabulary")),
                          .end_of_text = whole_of<std::int64_t>(each.at("end_of_text"))});
    }
    return fields;
}

Facts facts_of_json(Json const& json) {
    return {.inputs = fields_of(json.at("inputs")),
            .targets = fields_of(json.at("targets")),
            .classes = json.at("classes"),
            .class_count = whole_of<std::int64_t>(json.at("class_count")),
            .mean = json.at("mean"),
            .std = json.at("std"),
            .channels_last = json.value("channels_last", false), // of earlier versions, nowhere
            .target_mean = json.value("target_mean", std::vector<double>{}),
            .target_std = json.value("target_std", std::vector<double>{}),
            .scale_known = json.at("scale_known"),
            .columns = json.at("columns"),
            .sample_rate = json.at("sample_rate"),
            .token_bytes = wholes_of<std::uint8_t>(json.at("token_bytes")),
            .tokenizer = json.at("tokenizer")};
}

bool is_sound(FieldInfo const& field) {
    constexpr std::int64_t max_vocabulary = std::int64_t{1} << 31;
    std::uint64_t elements = 1;
    for (auto const extent : field.shape) {
        if (extent == 0 || extent > max_sample_values / elements) {
            return false;
        }
        elements *= extent;
    }
    return field.vocabulary >= 0 && field.vocabulary <= max_vocabulary;
}

[[noreturn]] void refuse_facts(std::string const& from, std::string const& why) {
    throw Error(ExitCode::data,
                {from, concat("what it says of its training data cannot be read: ", why),
                 "Copy the file again from its source, or name another"});
}

bool are_scales_of_targets(Facts const& facts) {
    auto const& mean = facts.target_mean;
    auto const& std = facts.target_std;
    if (mean.empty() && std.empty()) {
        return true;
    }
    bool const fits = mean.size() == 1 || facts.targets.empty() ||
                      mean.size() == h5::elements(facts.targets.front().shape);
    auto const is_finite = [](double value) { return std::isfinite(value); };
    auto const divides = [](double value) { return std::isfinite(value) && value > 0; };
    return fits && mean.size() == std.size() && std::ranges::all_of(mean, is_finite) &&
           std::ranges::all_of(std, divides);
}

/// What a data set could not have; empty: nothing.
std::string fault_of(Facts const& facts) {
    for (auto const& fields : {facts.inputs, facts.targets}) {
        if (auto const odd = std::ranges::find_if_not(fields, is_sound); odd != fields.end()) {
            return concat("no sample has the shape ", h5::shape_text(odd->shape),
                          " and a vocabulary of ", odd->vocabulary);
        }
    }
    if (facts.class_count < 0 || facts.class_count > max_classes ||
        std::ssize(facts.classes) > max_classes) {
        return concat("it has ",
                      std::max<std::int64_t>(facts.class_count, std::ssize(facts.classes)),
                      " classes, but may have at most ", count_text(max_classes));
    }
    if (facts.class_count > 0 && std::ssize(facts.classes) > facts.class_count) {
        return concat("it names ", facts.classes.size(), " classes, but has ", facts.class_count);
    }
    if (!facts.inputs.empty() && !fit_channels(facts.mean.size(), facts.inputs.front().shape)) {
        return concat("its mean and std are those of ", facts.mean.size(),
                      " channels, but its samples have the shape ",
                      h5::shape_text(facts.inputs.front().shape));
    }
    if (!are_scales_of_targets(facts)) {
        return "what it says that its targets were normalised by does not fit them";
    }
    auto const type = facts.inputs.empty() ? h5::Type::f32 : facts.inputs.front().type;
    return are_scales(type, facts.mean, facts.std) ? ""
                                                   : "its mean and std are not those of inputs";
}

} // namespace

std::string text_of(Facts const& facts) {
    Json json{{"inputs", json_of(facts.inputs)},
              {"targets", json_of(facts.targets)},
              {"classes", facts.classes},
              {"class_count", facts.class_count},
              {"mean", facts.mean},
              {"std", facts.std},
              {"channels_last", facts.channels_last},
              {"scale_known", facts.scale_known},
              {"columns", facts.columns},
              {"sample_rate", facts.sample_rate},
              {"token_bytes", facts.token_bytes},
              {"tokenizer", facts.tokenizer}};
    if (!facts.target_mean.empty()) {
        json["target_mean"] = facts.target_mean;
        json["target_std"] = facts.target_std;
    }
    return json.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

Facts facts_of_text(std::string const& text, std::string const& from) {
    Facts facts;
    try {
        facts = facts_of_json(parsed_json(
            text, [](std::string const& reason) { throw std::runtime_error("it " + reason); }));
    } catch (std::exception const& failure) { // no JSON, or a type that is none of ours
        refuse_facts(from, failure.what());
    }
    require_sound(facts, from);
    return facts;
}

void require_sound(Facts const& facts, std::string const& from) {
    if (auto const fault = fault_of(facts); !fault.empty()) {
        refuse_facts(from, fault);
    }
    if (facts.class_count > 0) {
        require_names(facts.classes, concat(from, ": "));
    }
    for (std::size_t i = 0; i < facts.classes.size(); ++i) {
        if (!facts.classes[i].empty()) { // as actions of a plug-in may be, and alike
            require_name(facts.classes[i], concat(from, ": class ", i));
        }
    }
}

std::string summary_of(Facts const& facts) {
    std::vector<std::string> parts;
    for (auto const& input : facts.inputs) {
        parts.push_back(concat(input.name, " ", h5::name_of(input.type), " ",
                               h5::shape_text(input.shape), input.ragged ? " in rows" : ""));
    }
    if (facts.class_count > 0) {
        parts.push_back(
            concat(facts.class_count, facts.class_count == 1 ? " class" : " classes",
                   facts.classes.empty() ? "" : concat(" (", some_of(facts.classes), ")")));
    }
    if (!facts.columns.empty()) {
        parts.push_back(concat("columns ", some_of(facts.columns)));
    }
    if (!facts.mean.empty()) {
        parts.push_back(facts.mean.size() == 1
                            ? concat("mean ", significant(facts.mean.front(), 4), ", std ",
                                     significant(facts.std.front(), 4))
                            : concat("mean and std of ", facts.mean.size(), " channels"));
    }
    if (!facts.target_mean.empty()) {
        parts.push_back(facts.target_mean.size() == 1
                            ? concat("targets normalised by mean ",
                                     significant(facts.target_mean.front(), 4), ", std ",
                                     significant(facts.target_std.front(), 4))
                            : concat("targets normalised by mean and std of ",
                                     facts.target_mean.size(), " values"));
    }
    if (facts.sample_rate > 0) {
        parts.push_back(concat(facts.sample_rate, " Hz"));
    }
    if (!facts.tokenizer.empty()) {
        parts.push_back(concat("a tokenizer of ", facts.token_bytes.size(), " tokens"));
    }
    return joined(parts, ", ");
}

} // namespace lockstep::data
