#include "record.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <nlohmann/json.hpp>

namespace lockstep::checkpoint {

namespace {

using Json = nlohmann::json;

constexpr std::int64_t format_version = 1;

std::string below(char const* name) {
    return concat(record_group, "/", name);
}

Error not_ours(std::filesystem::path const& path, std::string const& why) {
    return {ExitCode::data,
            {concat("cannot read ", path.string()), why,
             "Check that it is the right file, or make or copy it again"}};
}

/// Runs `work`, which handles JSON; what does not parse is damage of the file.
template <class Work>
auto parsing(std::filesystem::path const& path, Work const& work) {
    try {
        return work();
    } catch (Json::exception const& failure) {
        throw not_ours(path, failure.what());
    }
}

} // namespace

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
                        {concat("record value ", name, " is an integer and a real"),
                         "a name can be only one of them", "Please report this"});
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
        throw Error(ExitCode::data,
                    {concat(file.path().string(), " is no checkpoint"),
                     "it is a model alone, like best.h5, without the state of a run",
                     "Name a checkpoint (RUN/checkpoints/step-….h5); h5diff compares models"});
    }
    if (found != format || file.integer_attribute("/", "version") != format_version) {
        throw not_ours(file.path(), concat("it is not a ", format, " of version ", format_version));
    }
    Record record;
    for (auto const& name : file.attribute_names(record_group)) {
        if (auto const integer = file.integer_attribute(record_group, name)) {
            record.integers[name] = *integer;
        } else if (auto const reals = file.number_attribute(record_group, name);
                   reals && reals->size() == 1) {
            record.reals[name] = reals->front();
        } else {
            throw not_ours(file.path(), concat("record value ", name, " is not one number"));
        }
    }
    record.history = file.read_text(below("history"));
    record.deck = file.read_text(below("deck"));
    record.notes = parsing(file.path(), [&] {
        return Json::parse(file.read_text(below("notes"))).get<decltype(record.notes)>();
    });
    return record;
}

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
        auto const layout = Json::parse(text);
        for (auto const& entry : layout.at("arrays")) {
            auto const type = h5::type_named(entry.at("type").get<std::string>());
            if (!type) {
                throw not_ours(path, "an array is of an unknown type");
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

void try_space(std::filesystem::path const& path, std::uint64_t bytes) {
    auto const file = File::create(path);
    // Asked first, so as not to fill the disk for others in order to learn that it is too small.
    if (auto const free = free_space(path.parent_path()); free < bytes) {
        throw Error(
            ExitCode::io,
            {concat("no room for ", path.string()),
             concat("it takes ", bytes_text(bytes), ", and ", bytes_text(free), " are free there"),
             "Remove files, or name another disk (for a run: run.directory)"});
    }
    file.claim_space(bytes); // quotas and limits are told by trying only
}

std::uint64_t overhead_of(Record const& record, std::size_t datasets) {
    constexpr std::uint64_t fixed = std::uint64_t{64} << 10;
    constexpr std::uint64_t of_dataset = 8192; // two pages: its gap, its header
    constexpr std::uint64_t of_value = 256;
    auto bytes = fixed + datasets * of_dataset + record.history.size() + record.deck.size() +
                 (record.integers.size() + record.reals.size()) * of_value;
    for (auto const& [name, note] : record.notes) {
        bytes += name.size() + note.size() + of_value;
    }
    return bytes;
}

Error lacking(std::filesystem::path const& path, std::string const& what) {
    return {ExitCode::data,
            {concat(path.string(), " has no ", what), "it belongs to another model, or is damaged",
             "Check that it is the right file"}};
}

} // namespace lockstep::checkpoint
