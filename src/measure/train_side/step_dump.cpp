#include "step_dump.hpp"

#include "base/partial_file.hpp"
#include "h5/file.hpp"
#include "h5/text_rows.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace lockstep::measure {

namespace {

using Json = nlohmann::json;

void write_wholes(h5::File& file, std::string const& name,
                  std::vector<std::int64_t> const& values) {
    file.create_dataset(name, h5::Type::i64, {values.size()});
    file.write(name, h5::Type::i64, values);
}

void write_reals(h5::File& file, std::string const& name, std::vector<double> const& values) {
    file.create_dataset(name, h5::Type::f64, {values.size()});
    file.write(name, h5::Type::f64, values);
}

/// A column for each name, of all rows.
template <class Value>
std::vector<Value> column(Json const& rows, char const* name) {
    std::vector<Value> values;
    for (auto const& row : rows) {
        values.push_back(row.at(name).get<Value>());
    }
    return values;
}

/// One input or target of all batches, one sample after the other.
struct Joined {
    bool whole = false;
    bool ragged = false;
    h5::Shape shape; ///< of all rows
    std::vector<std::uint8_t> bytes;
    std::vector<std::int64_t> offsets{0};

    void add(Json const& field) {
        whole = field.at("whole");
        ragged = field.at("ragged");
        auto const more = field.at("shape").get<h5::Shape>();
        if (shape.empty()) {
            shape = more;
            shape.front() = 0;
        }
        shape.front() += more.front();
        auto const& values = field.at("bytes").get_binary();
        bytes.insert(bytes.end(), values.begin(), values.end());
        for (std::int64_t const rows : field.at("lengths")) {
            offsets.push_back(offsets.back() + rows);
        }
    }

    void write(h5::File& file, std::string const& name) const {
        auto const type = whole ? h5::Type::i64 : h5::Type::f32;
        file.create_dataset(name, type, shape);
        file.write(name, type, std::as_bytes(std::span(bytes)));
        if (ragged) {
            write_wholes(file, name + "_offsets", offsets);
        }
    }
};

void write_fields(h5::File& file, Json const& batches, std::string const& what) {
    std::map<std::string, Joined> all;
    for (auto const& batch : batches) {
        for (auto const& field : batch.at(what)) {
            all[field.at("name")].add(field);
        }
    }
    for (auto const& [name, joined] : all) {
        joined.write(file, what + "/" + name);
    }
}

void write_samples(h5::File& file, Json const& batches) {
    std::vector<std::int64_t> replicas;
    std::vector<std::int64_t> micro;
    Json samples = Json::array();
    for (auto const& batch : batches) {
        for (auto const& sample : batch.at("samples")) {
            replicas.push_back(batch.at("replica"));
            micro.push_back(batch.at("micro_batch"));
            samples.push_back(sample);
        }
    }
    write_wholes(file, "samples/replica", replicas);
    write_wholes(file, "samples/micro_batch", micro);
    write_wholes(file, "samples/sample", column<std::int64_t>(samples, "sample"));
    write_wholes(file, "samples/number_in_file", column<std::int64_t>(samples, "number_in_file"));
    h5::write_text_rows(file, "samples/file", column<std::string>(samples, "file"));
    h5::write_text_rows(file, "samples/source", column<std::string>(samples, "source"));
}

void write_operators(h5::File& file, Json const& operators) {
    for (auto const* const name : {"replica", "micro_batch", "values"}) {
        write_wholes(file, std::string("operators/") + name, column<std::int64_t>(operators, name));
    }
    for (auto const* const name : {"minimum", "maximum", "mean", "norm"}) {
        write_reals(file, std::string("operators/") + name, column<double>(operators, name));
    }
    for (auto const* const name : {"name", "backward", "parameter"}) {
        h5::write_text_rows(file, std::string("operators/") + name,
                            column<std::string>(operators, name));
    }
}

void write_gradients(h5::File& file, std::vector<train::Histogram> const& gradients) {
    std::vector<std::string> names;
    std::vector<double> norms;
    std::vector<double> minima;
    std::vector<double> maxima;
    for (auto const& each : gradients) {
        names.push_back(each.name);
        norms.push_back(std::sqrt(each.sum_of_squares));
        minima.push_back(each.minimum);
        maxima.push_back(each.maximum);
    }
    h5::write_text_rows(file, "gradients/parameter", names);
    write_reals(file, "gradients/norm", norms);
    write_reals(file, "gradients/minimum", minima);
    write_reals(file, "gradients/maximum", maxima);
}

} // namespace

nlohmann::json joined_ranks(std::vector<std::string> const& packed) {
    Json all{{"replicas", Json::array()}, {"batches", Json::array()}, {"operators", Json::array()}};
    for (auto const& of_rank : packed) { // ranks have replicas in order
        auto const part = Json::from_cbor(of_rank);
        for (auto const& [name, rows] : part.items()) {
            all[name].insert(all[name].end(), rows.begin(), rows.end());
        }
    }
    return all;
}

void write_dump(std::filesystem::path const& file, DumpedStep const& of_rank_0,
                std::vector<std::string> const& packed) {
    auto const all = joined_ranks(packed);
    PartialFile partial(partial_path(file));
    {
        auto h5 = h5::File::create(partial.path());
        auto const& step = of_rank_0.step;
        h5.set_attribute("/", "format", std::string("lockstep-step"));
        h5.set_attribute("/", "version", std::int64_t{1});
        h5.set_attribute("/", "run", of_rank_0.run);
        h5.set_attribute("/", "step", step.step);
        h5.set_attribute("/", "loss", std::vector{step.loss});
        h5.set_attribute("/", "learning_rate", std::vector{step.learning_rate});
        h5.set_attribute("/", "grad_norm", std::vector{step.grad_norm});
        h5.set_attribute("/", "weight_hash", step.weight_hash);
        write_wholes(h5, "replicas/replica", column<std::int64_t>(all["replicas"], "replica"));
        write_reals(h5, "replicas/loss_sum", column<double>(all["replicas"], "loss_sum"));
        write_reals(h5, "replicas/weight", column<double>(all["replicas"], "weight"));
        write_samples(h5, all["batches"]);
        write_fields(h5, all["batches"], "inputs");
        write_fields(h5, all["batches"], "targets");
        write_gradients(h5, of_rank_0.gradients);
        write_operators(h5, all["operators"]);
        h5.close();
    }
    partial.rename(file);
}

} // namespace lockstep::measure
