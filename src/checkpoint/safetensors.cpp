#include "checkpoint/safetensors.hpp"

#include "base/file.hpp"
#include "base/file_kind.hpp"
#include "base/json_text.hpp"
#include "base/partial_file.hpp"
#include "base/text.hpp"
#include "checkpoint/space.hpp"
#include "checkpoint/writer.hpp"
#include "comm/rounding.hpp"
#include "h5/element_type.hpp"
#include "lockstep/base/error.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <system_error>

namespace lockstep::checkpoint {

namespace {

using OrderedJson = nlohmann::ordered_json;
using Bytes = std::span<std::byte const>;
using WritableBytes = std::span<std::byte>;

constexpr std::uint64_t length_bytes = sizeof(std::uint64_t);
constexpr std::uint64_t max_header = 100'000'000;     // the format's own limit
constexpr char const* metadata_name = "__metadata__"; // texts by name
/// Notes of a model that are among them, by our names and by theirs.
constexpr std::array<std::pair<char const*, char const*>, 3> kept_notes{
    {{facts_note, "lockstep_facts"},
     {shapes_note, "lockstep_shapes"},
     {model_note, "lockstep_model"}}};
constexpr std::string_view index_ending = ".safetensors.index.json";

template <class From, class To>
void convert(Bytes from, WritableBytes into) {
    for (std::size_t at = 0; at < from.size() / sizeof(From); ++at) {
        From value{};
        std::memcpy(&value, from.data() + at * sizeof(From), sizeof(From));
        // NOLINTNEXTLINE(bugprone-signed-char-misuse,cert-str34-c): numbers, not letters
        auto const converted = static_cast<To>(value);
        std::memcpy(into.data() + at * sizeof(To), &converted, sizeof(To));
    }
}

template <comm::Rounding type>
void widen(Bytes from, WritableBytes into) {
    for (std::size_t at = 0; at < from.size() / sizeof(std::uint16_t); ++at) {
        std::uint16_t bits = 0;
        std::memcpy(&bits, from.data() + at * sizeof(bits), sizeof(bits));
        float const value = comm::unpacked(bits, type);
        std::memcpy(into.data() + at * sizeof(value), &value, sizeof(value));
    }
}

/// A type of the format, and what its numbers become here.
struct Kind {
    char const* name;
    std::uint64_t bytes;
    h5::Type becomes;
    void (*convert)(Bytes from, WritableBytes into);
};

constexpr std::array kinds{
    Kind{"F32", 4, h5::Type::f32, convert<float, float>},
    Kind{"I64", 8, h5::Type::i64, convert<std::int64_t, std::int64_t>},
    Kind{"F16", 2, h5::Type::f32, widen<comm::Rounding::fp16>},
    Kind{"BF16", 2, h5::Type::f32, widen<comm::Rounding::bf16>},
    Kind{"F64", 8, h5::Type::f32, convert<double, float>},
    Kind{"I32", 4, h5::Type::i64, convert<std::int32_t, std::int64_t>},
    Kind{"I16", 2, h5::Type::i64, convert<std::int16_t, std::int64_t>},
    Kind{"I8", 1, h5::Type::i64, convert<std::int8_t, std::int64_t>},
    Kind{"U8", 1, h5::Type::i64, convert<std::uint8_t, std::int64_t>},
    Kind{"BOOL", 1, h5::Type::i64, convert<std::uint8_t, std::int64_t>},
};

Error not_safetensors(std::filesystem::path const& path, std::string const& why) {
    return {ExitCode::data,
            {concat(path.string(), " is not a complete safetensors file"), why,
             "Check that this is the right file. If it is, copy the file again from its source"}};
}

std::uint64_t header_length(File const& file) {
    std::uint64_t length = 0;
    file.read_at(0, std::as_writable_bytes(std::span(&length, 1)));
    return length;
}

/// The product of a shape, or nothing when it is more than `max`.
std::optional<std::uint64_t> elements_up_to(h5::Shape const& shape, std::uint64_t max) {
    std::uint64_t product = 1;
    for (auto const extent : shape) {
        if (extent != 0 && product > max / extent) {
            return std::nullopt;
        }
        product *= extent;
    }
    return product;
}

class SafetensorsFile : public Weights {
  public:
    explicit SafetensorsFile(std::filesystem::path const& path)
        : Weights(path), file_(File::open_read(path)) {
        auto const size = file_.size();
        auto const length = size < length_bytes ? 0 : header_length(file_);
        if (length < 2 || length > max_header || length > size - length_bytes) {
            throw not_safetensors(path, "its header is longer than the file, or missing");
        }
        std::string header(length, ' ');
        file_.read_at(length_bytes, std::as_writable_bytes(std::span(header)));
        begin_ = length_bytes + length;
        auto const parsed = parsed_json(header, [&](std::string const& why) {
            throw not_safetensors(path, concat("its header ", why));
        });
        if (!parsed.is_object()) {
            throw not_safetensors(path, "its header is not a JSON object");
        }
        for (auto const& [name, tensor] : parsed.items()) {
            if (name != metadata_name) {
                add(name, tensor, size - begin_);
            } else if (tensor.is_object()) {
                for (auto const& [note, named] : kept_notes) {
                    if (tensor.contains(named) && tensor.at(named).is_string()) {
                        record_.notes[note] = tensor.at(named);
                    }
                }
            }
        }
        sort_by_place();
        for (std::size_t at = 1; at < places_.size(); ++at) {
            if (places_[at].first < places_[at - 1].end) {
                throw not_safetensors(path,
                                      concat("the bytes of its tensors ", entries_[at - 1].name,
                                             " and ", entries_[at].name, " overlap"));
            }
        }
        if (end_ != size - begin_) {
            throw not_safetensors(path, concat("its last ", size - begin_ - end_,
                                               " bytes belong to none of its tensors"));
        }
    }

  private:
    struct Place {
        Kind const* kind;
        std::uint64_t first;
        std::uint64_t end;
    };

    void sort_by_place() {
        std::vector<std::size_t> order(entries_.size());
        std::iota(order.begin(), order.end(), 0);
        std::ranges::stable_sort(order, {}, [&](std::size_t at) { // empty ones come first
            return std::pair(places_[at].first, places_[at].end);
        });
        std::vector<TensorInfo> entries;
        std::vector<Place> places;
        for (auto const at : order) {
            entries.push_back(std::move(entries_[at]));
            places.push_back(places_[at]);
        }
        entries_ = std::move(entries);
        places_ = std::move(places);
    }

    void add(std::string const& name, nlohmann::json const& tensor, std::uint64_t data) {
        try {
            auto const type = tensor.at("dtype").get<std::string>();
            auto const* const kind = std::find_if(
                kinds.begin(), kinds.end(), [&](Kind const& known) { return type == known.name; });
            if (kind == kinds.end()) {
                throw Error(ExitCode::data,
                            {concat("tensor ", name, " of ", path_.string()),
                             concat("the numbers of this tensor have the unsupported type ", type),
                             "Store the tensor as F32"});
            }
            auto const shape = tensor.at("shape").get<h5::Shape>();
            auto const bounds = tensor.at("data_offsets").get<std::array<std::uint64_t, 2>>();
            auto const count = elements_up_to(shape, data / kind->bytes);
            if (bounds[0] > bounds[1] || bounds[1] > data || !count ||
                bounds[1] - bounds[0] != *count * kind->bytes) {
                throw not_safetensors(
                    path_, concat("the bytes of tensor ", name,
                                  " do not match its shape, or lie beyond the end of the file"));
            }
            entries_.push_back({name, kind->becomes, shape});
            places_.push_back({&*kind, begin_ + bounds[0], begin_ + bounds[1]});
            end_ = std::max(end_, bounds[1]);
        } catch (nlohmann::json::exception const& failure) {
            throw not_safetensors(
                path_, concat("the header's entry ", name, " is malformed (", failure.what(), ")"));
        }
    }

    void read_entry(std::size_t index, std::span<std::byte> into) const override {
        auto const& place = places_[index];
        std::vector<std::byte> raw(h5::elements(entries_[index].shape) * place.kind->bytes);
        file_.read_at(place.first, raw);
        place.kind->convert(raw, into);
    }

    File file_;
    std::uint64_t begin_ = 0; ///< of the data
    std::uint64_t end_ = 0;   ///< of the last tensor, from there
    std::vector<Place> places_;
};

bool is_index(std::filesystem::path const& path) {
    return path.string().ends_with(index_ending);
}

/// The tensors of several files, as an index (weight_map) says which file holds which.
class JoinedSafetensors : public Weights {
  public:
    explicit JoinedSafetensors(std::filesystem::path const& path) : Weights(path) {
        for (auto const& [name, file] : files_by_tensor()) {
            auto& shard = shards_[file];
            if (shard == nullptr) {
                shard = std::make_unique<SafetensorsFile>(path.parent_path() / file);
            }
            auto const* const entry = shard->find(name);
            if (entry == nullptr) {
                throw not_safetensors(shard->path(),
                                      concat("it has no tensor ", name, ", although ",
                                             path.string(), " places it there"));
            }
            entries_.push_back(*entry);
            places_.push_back({shard.get(), entry});
        }
    }

  private:
    struct Place {
        Weights const* shard;
        TensorInfo const* entry;
    };

    std::map<std::string, std::string> files_by_tensor() const {
        auto const broken = [&](std::string const& why) {
            return Error(ExitCode::data,
                         {concat(path_.string(), " is not an index of safetensors"), why,
                          "Copy the index and its files again from their source"});
        };
        if (File::open_read(path_).size() > max_header) {
            throw broken("it is too long");
        }
        auto const parsed = parsed_json(
            read_text(path_), [&](std::string const& why) { throw broken(concat("it ", why)); });
        auto const map = parsed.is_object() ? parsed.find("weight_map") : parsed.end();
        if (map == parsed.end() || !map->is_object()) {
            throw broken("it is not JSON with a weight_map");
        }
        std::map<std::string, std::string> files;
        for (auto const& [name, value] : map->items()) {
            auto const file = value.is_string() ? value.get<std::string>() : std::string();
            if (file.find('/') != std::string::npos || !file.ends_with(".safetensors")) {
                throw broken(concat("the file of tensor ", name,
                                    " is not the name of a safetensors file beside the index"));
            }
            files[name] = file;
        }
        return files;
    }

    void read_entry(std::size_t index, std::span<std::byte> into) const override {
        places_[index].shard->read(*places_[index].entry, into);
    }

    std::map<std::string, std::unique_ptr<SafetensorsFile>> shards_; ///< by their file's name
    std::vector<Place> places_;                                      ///< of each entry
};

/// The type's name in the format.
char const* name_of(h5::Type type, comm::Rounding rounding) {
    if (type != h5::Type::f32) {
        return "I64";
    }
    switch (rounding) {
    case comm::Rounding::fp16:
        return "F16";
    case comm::Rounding::bf16:
        return "BF16";
    case comm::Rounding::none:
        break;
    }
    return "F32";
}

/// A tensor to write.
struct Stored {
    Weights::TensorInfo const* entry;
    char const* type;
    std::uint64_t size; ///< of an element

    std::uint64_t bytes() const { return h5::elements(entry->shape) * size; }
};

/// Elements of eight bytes come first and those of two last, so that each is aligned.
std::vector<Stored> in_file_order(Weights const& weights, comm::Rounding rounding) {
    std::vector<Stored> all;
    for (auto const& entry : weights.entries()) {
        bool const narrows = entry.type == h5::Type::f32 && rounding != comm::Rounding::none;
        all.push_back({&entry, name_of(entry.type, rounding),
                       narrows ? sizeof(std::uint16_t) : h5::size_of(entry.type)});
    }
    std::ranges::stable_sort(all, std::ranges::greater(), &Stored::size);
    return all;
}

std::string header_of(std::vector<Stored> const& tensors, Record const& record) {
    OrderedJson header;
    header[metadata_name] = {{"format", "pt"}};
    for (auto const& [note, named] : kept_notes) {
        if (auto const found = record.notes.find(note); found != record.notes.end()) {
            header[metadata_name][named] = found->second;
        }
    }
    std::uint64_t at = 0;
    for (auto const& tensor : tensors) {
        OrderedJson value{{"dtype", tensor.type},
                          {"shape", tensor.entry->shape},
                          {"data_offsets", {at, at + tensor.bytes()}}};
        // Each name occurs once, and need not be looked for.
        header.get_ref<OrderedJson::object_t&>().emplace_back(tensor.entry->name, std::move(value));
        at += tensor.bytes();
    }
    auto text = header.dump();
    text.resize((text.size() + length_bytes - 1) / length_bytes * length_bytes,
                ' '); // aligned data
    return text;
}

/// The values of a tensor, rounded to 16 bits in place.
void narrow(std::vector<std::byte>& values, std::string const& name, comm::Rounding rounding) {
    auto const count = values.size() / sizeof(float);
    for (std::size_t at = 0; at < count; ++at) {
        float value = 0;
        std::memcpy(&value, values.data() + at * sizeof(value), sizeof(value));
        auto const bits = comm::packed(value, rounding);
        if (std::isfinite(value) && !std::isfinite(comm::unpacked(bits, rounding))) {
            bool const half = rounding == comm::Rounding::fp16;
            throw Error(ExitCode::usage,
                        {concat("tensor ", name, " cannot be stored as ", half ? "f16" : "bf16"),
                         concat("the value ", value, " would become infinite"),
                         half ? "Use --type bf16, because bf16 has the range of float32"
                              : "Use --type f32"});
        }
        std::memcpy(values.data() + at * sizeof(bits), &bits, sizeof(bits));
    }
    values.resize(count * sizeof(std::uint16_t));
}

} // namespace

bool is_safetensors(std::filesystem::path const& path) {
    auto const file = File::open_read(path);
    if (is_index(path)) {
        return true;
    }
    if (begins_as_safetensors(file)) {
        return true;
    }
    // What is left of one that was cut off or overwritten has only its name.
    return path.extension() == ".safetensors" && kind_of_file(path).name.empty() && !is_hdf5(path);
}

std::filesystem::path safetensors_of(std::filesystem::path const& path) {
    if (!std::filesystem::is_directory(path)) {
        return path;
    }
    auto const index = path / "model.safetensors.index.json";
    auto const single = path / "model.safetensors";
    bool const has_index = std::filesystem::exists(index);
    bool const has_single = std::filesystem::exists(single);
    if (has_index && has_single) {
        throw Error(ExitCode::usage,
                    {concat(path.string(), " has both ", single.filename().string(), " and ",
                            index.filename().string()),
                     "they may hold the weights of different models", "Name one of the two"});
    }
    if (has_index || has_single) {
        return has_index ? index : single;
    }
    throw Error(ExitCode::no_input,
                {concat(path.string(), " is a directory"),
                 "it has neither model.safetensors nor model.safetensors.index.json",
                 "Name the file of weights, or another directory"});
}

std::unique_ptr<Weights> open_safetensors(std::filesystem::path const& path) {
    if (is_index(path)) {
        return std::make_unique<JoinedSafetensors>(path);
    }
    return std::make_unique<SafetensorsFile>(path);
}

void write_safetensors(std::filesystem::path const& path, Weights const& weights,
                       comm::Rounding rounding, std::string const& model) {
    auto const tensors = in_file_order(weights, rounding);
    auto record = weights.record();
    if (!model.empty()) {
        record.notes[model_note] = model;
    }
    auto const header = header_of(tensors, record);
    std::uint64_t const length = header.size();
    std::uint64_t at = length_bytes + length;
    auto bytes = at;
    for (auto const& tensor : tensors) {
        bytes += tensor.bytes();
    }
    PartialFile partial(lockstep::partial_path(path));
    try_space(partial.path(), bytes);
    auto const file = File::open_write(partial.path());
    file.write_at(0, std::as_bytes(std::span(&length, 1)));
    file.write_at(length_bytes, std::as_bytes(std::span(header)));
    std::vector<std::byte> values;
    for (auto const& tensor : tensors) {
        values.resize(tensor.entry->bytes());
        weights.read(*tensor.entry, values);
        if (tensor.bytes() < values.size()) {
            narrow(values, tensor.entry->name, rounding);
        }
        file.write_at(at, values);
        at += values.size();
    }
    file.sync();
    partial.rename(path);
}

} // namespace lockstep::checkpoint
