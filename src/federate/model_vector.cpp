#include "federate/model_vector.hpp"

#include "base/text.hpp"
#include "checkpoint/model_file.hpp"
#include "checkpoint/record.hpp"
#include "federate/keys.hpp"

#include <algorithm>

namespace lockstep::federate {

namespace {

constexpr char const* first_name = "server/exp_avg";
constexpr char const* second_name = "server/exp_avg_sq";
constexpr char const* control_name = "server/control";
constexpr char const* control_samples_name = "control_samples";
constexpr char const* state_note = "server_state";

bool is_real(checkpoint::Weights::TensorInfo const& entry) {
    return entry.type == h5::Type::f32;
}

bool is_statistic(checkpoint::Weights::TensorInfo const& entry) {
    return entry.name.ends_with("running_mean") || entry.name.ends_with("running_var");
}

std::string model_path(std::string name) {
    std::replace(name.begin(), name.end(), '.', '/');
    return "model/" + name;
}

template <class Real>
std::vector<Real> state_in(checkpoint::ModelFile const& file, char const* name,
                           std::size_t expected) {
    std::vector<Real> values(expected);
    file.read(name, std::as_writable_bytes(std::span(values)));
    return values;
}

} // namespace

ModelVector ModelVector::read(std::filesystem::path const& path) {
    checkpoint::VerifiedFile const file(path);
    auto const weights = checkpoint::open_weights(file);
    ModelVector model;
    model.record_ = weights->record();
    model.entries_ = weights->entries();
    std::ranges::sort(model.entries_, {}, &TensorInfo::name);
    for (auto const& entry : model.entries_) {
        auto const& stored = *weights->find(entry.name);
        if (is_real(entry)) {
            auto const first = model.values.size();
            model.values.resize(first + h5::elements(entry.shape));
            weights->read(stored, std::as_writable_bytes(std::span(model.values).subspan(first)));
        } else {
            weights->read(stored, model.wholes_.emplace_back(entry.bytes()));
        }
    }
    auto const& notes = model.record_.notes;
    if (auto const found = notes.find(state_note); found != notes.end()) {
        checkpoint::ModelFile const state(file);
        auto const count = model.values.size();
        if (found->second == "scaffold") {
            model.control = state_in<float>(state, control_name, count);
            auto const& reals = model.record_.reals;
            auto const samples = reals.find(control_samples_name);
            model.control_samples = samples == reals.end() ? 0 : samples->second;
        } else {
            model.first_moment = state_in<double>(state, first_name, count);
            model.second_moment = state_in<double>(state, second_name, count);
        }
    }
    return model;
}

std::vector<bool> ModelVector::buffers() const {
    std::vector<bool> all;
    for (auto const& entry : entries_) {
        auto const count = is_real(entry) ? h5::elements(entry.shape) : 0;
        all.insert(all.end(), count, entry.is_buffer || is_statistic(entry));
    }
    all.resize(values.size());
    return all;
}

std::string ModelVector::statistic() const {
    auto const found = std::ranges::find_if(entries_, is_statistic);
    return found == entries_.end() ? std::string() : found->name;
}

std::string ModelVector::fingerprint() const {
    Digester digester;
    for (auto const& entry : entries_) {
        auto const& shape = entry.shape;
        bool const single = shape == h5::Shape{1}; // of our files, [] in others
        digester.add(concat(entry.name, " ", h5::name_of(entry.type), " ",
                            h5::shape_text(single ? h5::Shape{} : shape), "\n"));
    }
    return hex_text(digester.digest()).substr(0, 32);
}

std::string ModelVector::digest_of_values() const {
    Digester digester;
    digester.add(fingerprint()).add(std::as_bytes(std::span(values)));
    for (auto const& whole : wholes_) {
        digester.add(whole);
    }
    digester.add(std::as_bytes(std::span(first_moment)));
    digester.add(std::as_bytes(std::span(second_moment)));
    digester.add(std::as_bytes(std::span(control)));
    if (control_samples > 0) {
        digester.add(std::as_bytes(std::span(&control_samples, 1)));
    }
    return hex_text(digester.digest());
}

std::string ModelVector::digest() const {
    Digester digester;
    auto const add = [&](std::string const& name, std::string const& text) {
        digester.add(concat(name, " ", text.size(), "\n", text, "\n"));
    };
    add("values", digest_of_values());
    add("deck", record_.deck);
    for (auto const& [name, text] : record_.notes) {
        if (name != state_note && name != checkpoint::buffers_note) { // `write` makes these
            add(concat("note ", name), text);
        }
    }
    for (auto const& entry : entries_) {
        add("buffer", entry.is_buffer ? entry.name : std::string());
    }
    return hex_text(digester.digest());
}

bool ModelVector::has_digest(std::string const& digest) const {
    return digest == this->digest() || digest == digest_of_values();
}

void ModelVector::write(std::filesystem::path const& path, std::int64_t round) const {
    std::vector<checkpoint::NamedArray> arrays;
    std::vector<std::string> buffers;
    std::size_t first = 0;
    std::size_t whole = 0;
    for (auto const& entry : entries_) {
        auto const count = is_real(entry) ? h5::elements(entry.shape) : 0;
        arrays.push_back({model_path(entry.name), entry.type, entry.shape,
                          is_real(entry) ? std::as_bytes(std::span(values).subspan(first, count))
                                         : std::span<std::byte const>(wholes_[whole++])});
        if (entry.is_buffer) {
            buffers.push_back(model_path(entry.name));
        }
        first += count;
    }
    auto record = record_;
    record.integers = {{checkpoint::federated_rounds, round}};
    record.reals.clear();
    record.history.clear();
    record.notes.erase(state_note);
    if (!buffers.empty()) {
        record.notes[checkpoint::buffers_note] = joined(buffers, "\n");
    }
    if (!first_moment.empty()) {
        record.notes[state_note] = "fedadam";
        arrays.push_back({first_name,
                          h5::Type::f64,
                          {first_moment.size()},
                          std::as_bytes(std::span(first_moment))});
        arrays.push_back({second_name,
                          h5::Type::f64,
                          {second_moment.size()},
                          std::as_bytes(std::span(second_moment))});
    }
    if (!control.empty()) {
        record.notes[state_note] = "scaffold";
        arrays.push_back(
            {control_name, h5::Type::f32, {control.size()}, std::as_bytes(std::span(control))});
        if (control_samples > 0) {
            record.reals[control_samples_name] = control_samples;
        }
    }
    checkpoint::write_model(path, arrays, record);
}

} // namespace lockstep::federate
