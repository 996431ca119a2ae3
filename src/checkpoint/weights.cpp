#include "checkpoint/weights.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "checkpoint/checksum_header.hpp"
#include "checkpoint/content.hpp"
#include "checkpoint/merged_weights.hpp"
#include "checkpoint/model_file.hpp"
#include "checkpoint/reader.hpp"
#include "checkpoint/safetensors.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <set>

namespace lockstep::checkpoint {

namespace {

constexpr std::string_view model_group = "model/";
constexpr std::string_view averaged_group = "optimizer/ema/";

/// "model/features/0/weight" as "features.0.weight".
std::string name_of_path(std::string path) {
    path.erase(0, model_group.size());
    std::replace(path.begin(), path.end(), '/', '.');
    return path;
}

std::string path_of_name(std::string name) {
    std::replace(name.begin(), name.end(), '.', '/');
    return concat(model_group, name);
}

class ModelWeights : public Weights {
  public:
    explicit ModelWeights(VerifiedFile const& file) : Weights(file.path()), file_(file) {
        record_ = file_.record();
        auto const note = record_.notes.find(buffers_note);
        auto const buffers =
            note == record_.notes.end() ? std::vector<std::string>() : split(note->second, '\n');
        std::set<std::string> const is_buffer(buffers.begin(), buffers.end());
        for (auto const& entry : file_.entries()) {
            quantised_ = quantised_ || entry.path.starts_with(concat(quantised_group, "/"));
            if (entry.path.starts_with(model_group)) {
                entries_.push_back({name_of_path(entry.path), entry.type, entry.shape,
                                    is_buffer.contains(entry.path)});
            }
        }
    }

  private:
    void read_entry(std::size_t index, std::span<std::byte> into) const override {
        file_.read(path_of_name(entries_[index].name), into);
    }

    ModelFile file_;
};

class CheckpointWeights : public Weights {
  public:
    explicit CheckpointWeights(VerifiedFile const& file) : Weights(file.path()), reader_(file) {
        record_ = reader_.record();
        std::map<std::string, h5::View const*> averaged;
        for (auto const& view : reader_.views()) {
            if (view.path.starts_with(averaged_group)) {
                averaged.emplace(view.path.substr(averaged_group.size()), &view);
            }
        }
        for (auto const& view : reader_.views()) {
            if (view.path.starts_with(model_group)) {
                auto const found = averaged.find(view.path.substr(model_group.size()));
                auto const& source = found == averaged.end() ? view : *found->second;
                entries_.push_back({name_of_path(view.path), reader_.array(source.source).type,
                                    view.shape, view.source == real_buffers});
                sources_.push_back(&source);
            }
        }
    }

  private:
    void read_entry(std::size_t index, std::span<std::byte> into) const override {
        reader_.read(sources_[index]->source, sources_[index]->first, into);
    }

    Reader reader_;
    std::vector<h5::View const*> sources_; ///< of each entry
};

} // namespace

Weights::TensorInfo const* Weights::find(std::string const& name) const {
    if (by_name_.empty()) {
        for (std::size_t at = 0; at < entries_.size(); ++at) {
            by_name_.try_emplace(entries_[at].name, at);
        }
    }
    auto const found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : &entries_[found->second];
}

void Weights::read(TensorInfo const& entry, std::span<std::byte> into) const {
    if (into.size() != entry.bytes()) {
        throw Error(ExitCode::software,
                    {concat("cannot read array ", entry.name),
                     concat("it has ", entry.bytes(), " bytes, but its buffer has ", into.size()),
                     "This is a bug; please report it"});
    }
    read_entry(static_cast<std::size_t>(&entry - entries_.data()), into);
}

std::unique_ptr<Weights> open_weights(VerifiedFile const& file) {
    if (is_safetensors(file.path())) {
        return open_safetensors(file.path());
    }
    auto const bytes = File::open_read(file.path());
    require_checksum_header(bytes); // says more of a cut file than HDF5
    if (content_of(bytes) == Content::outputs) {
        throw no_model_but_outputs(file.path());
    }
    if (is_model_file(file.path())) {
        return std::make_unique<ModelWeights>(file);
    }
    return merged_weights(std::make_unique<CheckpointWeights>(file));
}

void write_model(std::filesystem::path const& path, Weights const& weights) {
    std::vector<std::vector<std::byte>> values;
    std::vector<NamedArray> arrays;
    for (auto const& entry : weights.entries()) {
        auto& bytes = values.emplace_back(entry.bytes());
        weights.read(entry, bytes);
        arrays.push_back({path_of_name(entry.name), entry.type, entry.shape, bytes});
    }
    write_model(path, arrays, weights.record());
}

} // namespace lockstep::checkpoint
