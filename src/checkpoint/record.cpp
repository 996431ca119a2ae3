#include "checkpoint/record.hpp"

#include "base/file.hpp"
#include "base/json_text.hpp"
#include "base/text.hpp"
#include "checkpoint/content.hpp"
#include "lockstep/base/error.hpp"

#include <nlohmann/json.hpp>

#include "damage.hpp"
#include "parsing.hpp"

namespace lockstep::checkpoint {

namespace {

using Json = nlohmann::json;

constexpr std::int64_t format_version = 1;

std::string below(char const* name) {
    return concat(record_group, "/", name);
}

template <class Map>
auto value_of(Map const& values, std::string const& name) {
    auto const found = values.find(name);
    if (found == values.end()) {
        throw Error(ExitCode::data, {concat("the checkpoint's record has no ", name),
                                     "another version of the program wrote the checkpoint",
                                     "Resume the run with the version that wrote the checkpoint"});
    }
    return found->second;
}

} // namespace

std::int64_t integer_of(Record const& record, std::string const& name) {
    return value_of(record.integers, name);
}

std::int64_t integer_of(Record const& record, std::string const& name, std::int64_t otherwise) {
    auto const found = record.integers.find(name);
    return found == record.integers.end() ? otherwise : found->second;
}

double real_of(Record const& record, std::string const& name) {
    return value_of(record.reals, name);
}

void write_record(h5::File& file, Record const& record, std::string const& format) {
    file.set_attribute("/", "format", format);
    file.set_attribute("/", "version", format_version);
    file.write_text(below("history"), record.history);
    file.write_text(below("deck"), record.deck);
    // Notes may hold anything, so what is not UTF-8 in them is replaced, never refused.
    file.write_text(below("notes"),
                    Json(record.notes).dump(2, ' ', false, Json::error_handler_t::replace));
    for (auto const& [name, value] : record.integers) {
        if (record.reals.contains(name)) {
            throw Error(ExitCode::software,
                        {concat("record value ", name, " is both an integer and a real number"),
                         "a name can be only one of them", "This is a bug; please report it"});
        }
        file.set_attribute(record_group, name, value);
    }
    for (auto const& [name, value] : record.reals) {
        file.set_attribute(record_group, name, std::vector<double>{value});
    }
}

Record read_record(h5::File const& file, std::string const& format) {
    auto const found = file.text_attribute("/", "format");
    if (found == model_format && format == checkpoint_format) {
        if (content_of(File::open_read(file.path())) == Content::quantised) {
            throw not_a_checkpoint(file.path(),
                                   "is an int8 model, which can only be evaluated and exported");
        }
        constexpr char const* advice =
            "To begin a new run with this model, set model.weights to this "
            "file. To compare two models, use h5diff";
        if (file.exists(record_group) && file.integer_attribute(record_group, federated_rounds)) {
            throw not_a_checkpoint(file.path(),
                                   "is a global model of a federation, and not the state of a run",
                                   advice);
        }
        throw not_a_checkpoint(
            file.path(), "holds only a model, like best.h5, and not the state of a run", advice);
    }
    if (found != format || file.integer_attribute("/", "version") != format_version) {
        bool const other = found == checkpoint_format || found == model_format;
        throw not_ours(file.path(),
                       other && found != format
                           ? concat("it is a ", *found, ", not a ", format)
                           : concat("it is not a ", format, " of version ", format_version));
    }
    Record record;
    for (auto const& name : file.attribute_names(record_group)) {
        if (auto const integer = file.integer_attribute(record_group, name)) {
            record.integers[name] = *integer;
        } else if (auto const reals = file.number_attribute(record_group, name);
                   reals && reals->size() == 1) {
            record.reals[name] = reals->front();
        } else {
            throw not_ours(file.path(), concat("record value ", name, " is not a single number"));
        }
    }
    record.history = file.read_text(below("history"));
    record.deck = file.read_text(below("deck"));
    record.notes = parsing(file.path(), [&] {
        return parsed_json(file.read_text(below("notes")),
                           [&](std::string const& why) {
                               throw not_ours(file.path(), concat("its JSON ", why));
                           })
            .get<decltype(record.notes)>();
    });
    return record;
}

} // namespace lockstep::checkpoint
