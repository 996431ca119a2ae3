#include "checkpoint/record.hpp"

#include "base/file.hpp"
#include "base/json_text.hpp"
#include "base/text.hpp"
#include "checkpoint/content.hpp"
#include "checkpoint/record_fields.hpp"
#include "lockstep/base/error.hpp"

#include <nlohmann/json.hpp>

#include "damage.hpp"
#include "parsing.hpp"

namespace lockstep::checkpoint {

namespace {

using Json = nlohmann::json;
using Integers = decltype(Record::integers);
using Reals = decltype(Record::reals);
using Texts = decltype(Record::notes);

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

struct WriteFields {
    h5::File& file;
    Record const& record;

    void operator()(char const* name, std::string const& text) const {
        file.write_text(below(name), text);
    }
    void operator()(char const* name, Texts const& notes) const {
        // Notes may hold anything, so what is not UTF-8 in them is replaced, never refused.
        file.write_text(below(name),
                        Json(notes).dump(2, ' ', false, Json::error_handler_t::replace));
    }
    void operator()(char const* /*name*/, Integers const& integers) const {
        for (auto const& [name, value] : integers) {
            if (record.reals.contains(name)) {
                throw Error(ExitCode::software,
                            {concat("record value ", name, " is both an integer and a real number"),
                             "a name can be only one of them", "This is a bug; please report it"});
            }
            file.set_attribute(record_group, name, value);
        }
    }
    void operator()(char const* /*name*/, Reals const& reals) const {
        for (auto const& [name, value] : reals) {
            file.set_attribute(record_group, name, std::vector<double>{value});
        }
    }
};

/// Reads fields back. Whole numbers among a record's attributes are its integers, the others its
/// reals.
struct ReadFields {
    h5::File const& file;

    void operator()(char const* name, std::string& text) const {
        text = file.read_text(below(name));
    }
    void operator()(char const* name, Texts& notes) const {
        notes = parsing(file.path(), [&] {
            return parsed_json(file.read_text(below(name)),
                               [&](std::string const& why) {
                                   throw not_ours(file.path(), concat("its JSON ", why));
                               })
                .get<Texts>();
        });
    }
    void operator()(char const* /*name*/, Integers& integers) const {
        for (auto const& name : file.attribute_names(record_group)) {
            if (auto const integer = file.integer_attribute(record_group, name)) {
                integers[name] = *integer;
            }
        }
    }
    void operator()(char const* /*name*/, Reals& reals) const {
        for (auto const& name : file.attribute_names(record_group)) {
            if (file.integer_attribute(record_group, name)) {
                continue;
            }
            auto const numbers = file.number_attribute(record_group, name);
            if (!numbers || numbers->size() != 1) {
                throw not_ours(file.path(),
                               concat("record value ", name, " is not a single number"));
            }
            reals[name] = numbers->front();
        }
    }
};

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
    each_field(record, WriteFields{file, record});
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
    each_field(record, ReadFields{file});
    return record;
}

} // namespace lockstep::checkpoint
