#include "report/tensorboard.hpp"

#include "base/device_gauge.hpp"
#include "base/memory.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "lockstep/monitor/run_records.hpp"
#include "report/png.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <map>

#include "event.pb.h"
#include "event_file.hpp"

namespace lockstep::report {

namespace {

double seconds_since_1970() {
    using namespace std::chrono;
    return duration<double>(system_clock::now().time_since_epoch()).count();
}

/// A deck's value as the type it looks like.
wire::HParam hyper_parameter(std::string const& text) {
    wire::HParam parameter;
    if (text == "true" || text == "false") {
        parameter.set_bool_value(text == "true");
    } else if (auto const number = number_of<double>(text)) {
        parameter.set_number_value(*number);
    } else {
        parameter.set_string_value(text);
    }
    return parameter;
}

/// TensorBoard makes a section of what stands before a tag's first slash: one for all classes.
constexpr char const* by_class = "_by_class/";
constexpr std::size_t max_classes = 50; ///< that have a chart of their own

/// A class's name as one part of a tag; two different ones stay different.
std::string escaped(std::string const& name) {
    std::string all;
    for (char const letter : name) {
        all += letter == '/' ? "%2F" : letter == '%' ? "%25" : std::string(1, letter);
    }
    return all;
}

/// The summaries of one event.
class Scalars {
  public:
    explicit Scalars(std::int64_t step) { event_.set_step(step); }

    Scalars& add(std::string const& tag, double value) {
        auto& entry = *event_.mutable_summary()->add_value();
        entry.set_tag(tag);
        entry.set_simple_value(static_cast<float>(value));
        return *this;
    }

    wire::Event& event() { return event_; }

  private:
    wire::Event event_;
};

/// How the values of very many classes are spread.
void add_spread(Scalars& scalars, std::string const& metric, std::string const& set,
                std::vector<double> values) {
    std::sort(values.begin(), values.end());
    constexpr std::array<std::pair<char const*, double>, 5> places{{{"0_worst", 0},
                                                                    {"1_lower_tenth", 0.1},
                                                                    {"2_median", 0.5},
                                                                    {"3_upper_tenth", 0.9},
                                                                    {"4_best", 1}}};
    for (auto const& [name, place] : places) {
        auto const at = std::llround(place * static_cast<double>(values.size() - 1));
        scalars.add(concat(metric, by_class, name, "/", set), values[static_cast<std::size_t>(at)]);
    }
}

void fill(wire::Histogram& histogram, train::Histogram const& values) {
    histogram.set_min(values.minimum);
    histogram.set_max(values.maximum);
    histogram.set_sum(values.sum);
    histogram.set_sum_squares(values.sum_of_squares);
    auto const n = static_cast<double>(values.counts.size());
    double count = 0;
    for (std::size_t i = 0; i < values.counts.size(); ++i) {
        histogram.add_bucket_limit(values.minimum + (values.maximum - values.minimum) *
                                                        static_cast<double>(i + 1) / n);
        histogram.add_bucket(values.counts[i]);
        count += values.counts[i];
    }
    histogram.set_num(count);
}

class TensorBoard : public train::Observer {
  public:
    explicit TensorBoard(config::Deck const& deck)
        : deck_(deck), file_(std::filesystem::path(deck.run.directory) / "tensorboard") {
        wire::Event first;
        first.set_file_version("brain.Event:2");
        write(first);
    }

    void on(train::Event const& event) override {
        std::visit([this](auto const& e) { record(e); }, event);
    }

  private:
    void write(wire::Event& event) const {
        event.set_wall_time(seconds_since_1970());
        file_.append(event.SerializeAsString());
    }

    void write(Scalars& scalars) const { write(scalars.event()); }

    void write(std::string const& tag, wire::HParams& parameters) const {
        wire::Event event;
        auto& value = *event.mutable_summary()->add_value();
        value.set_tag(tag);
        auto& plugin = *value.mutable_metadata()->mutable_plugin_data();
        plugin.set_plugin_name("hparams");
        plugin.set_content(parameters.SerializeAsString());
        value.mutable_tensor()->set_dtype(1);
        value.mutable_tensor()->mutable_tensor_shape();
        write(event);
    }

    void record(train::Started const& e) {
        gauge_.look_at(e.device_of_rank.empty() ? "cpu" : e.device_of_rank[0]);
        wire::HParams parameters;
        auto& start = *parameters.mutable_session_start_info();
        start.set_start_time_secs(seconds_since_1970());
        start.set_group_name(deck_.run.name);
        for (auto const& setting : config::settings(deck_)) {
            if (setting.at_resume == config::AtResume::forced) {
                (*start.mutable_hparams())[setting.key] = hyper_parameter(setting.value);
            }
        }
        write("_hparams_/session_start_info", parameters);
    }

    void record(train::Resumed const& e) { revoke_from(e.step + 1); }

    /// Earlier attempts' words on this and later steps do not count any more.
    void revoke_from(std::int64_t step) {
        wire::Event event;
        event.set_step(step);
        event.mutable_session_log()->set_status(wire::SessionLog::START);
        write(event);
        revoked_ = true;
    }

    void record(train::Step const& e) {
        if (!revoked_) { // started over, without a checkpoint
            revoke_from(e.step);
        }
        if (!e.logged) {
            return;
        }
        Scalars scalars(e.step);
        scalars.add("loss/training", e.loss)
            .add("optimizer/learning_rate", e.learning_rate)
            .add("optimizer/gradient_norm", e.grad_norm)
            .add("throughput/samples_per_s", static_cast<double>(e.samples) / e.step_s)
            .add("time_ms/step", 1e3 * e.step_s)
            .add("time_ms/data", 1e3 * e.data_s)
            .add("time_ms/forward", 1e3 * e.forward_s)
            .add("time_ms/backward", 1e3 * e.backward_s)
            .add("time_ms/update", 1e3 * e.update_s)
            .add("time_ms/communication", 1e3 * e.communication_s)
            .add("time_ms/communication_hidden", 1e3 * e.hidden_s)
            .add("time_ms/imbalance", 1e3 * e.imbalance_s)
            .add("memory_bytes/host", static_cast<double>(resident_memory()));
        if (e.device_memory > 0) {
            scalars.add("memory_bytes/device", static_cast<double>(e.device_memory))
                .add("memory_bytes/device_peak", static_cast<double>(e.device_memory_peak));
        }
        for (auto const& [name, value] : e.figures) {
            scalars.add(name + "/training", value);
        }
        if (auto const busy = gauge_.utilization()) {
            scalars.add("device/utilization", *busy);
        }
        if (e.loss_scale != 1) {
            scalars.add("optimizer/loss_scale", e.loss_scale);
        }
        write(scalars);
    }

    void record(train::Measuring const&) const {}
    void record(train::Measured const& e) const {
        Scalars scalars(e.step);
        scalars.add("loss/" + e.set, e.loss);
        std::map<std::string, std::vector<double>> of_classes;
        for (auto const& [name, value] : e.metrics) {
            if (monitor::is_of_one_class(name)) {
                of_classes[name.substr(0, name.find('.'))].push_back(value);
            } else {
                scalars.add(name + "/" + e.set, value);
            }
        }
        for (auto const& [metric, values] : of_classes) {
            if (values.size() > max_classes) {
                add_spread(scalars, metric, e.set, values);
            }
        }
        for (auto const& [name, value] : e.metrics) {
            if (!monitor::is_of_one_class(name)) {
                continue;
            }
            auto const dot = name.find('.');
            if (auto const metric = name.substr(0, dot);
                of_classes.at(metric).size() <= max_classes) {
                scalars.add(concat(metric, by_class, escaped(name.substr(dot + 1)), "/", e.set),
                            value);
            }
        }
        write(scalars);
    }

    void record(train::Epoch const& e) const {
        Scalars scalars(e.step);
        scalars.add("loss/epoch", e.loss);
        if (e.accuracy) {
            scalars.add("accuracy/training", *e.accuracy);
        }
        for (auto const& [name, value] : e.figures) {
            scalars.add(name + "/epoch", value);
        }
        write(scalars);
    }

    void record(train::Histograms const& e) const {
        wire::Event event;
        event.set_step(e.step);
        for (auto const& parameter : e.parameters) {
            auto& value = *event.mutable_summary()->add_value();
            value.set_tag(e.what + "/" + parameter.name);
            fill(*value.mutable_histo(), parameter);
        }
        write(event);
    }

    void record(train::Pictures const& e) const {
        wire::Event event;
        event.set_step(e.step);
        for (std::size_t i = 0; i < e.samples.size(); ++i) {
            auto const& picture = e.samples[i];
            auto& value = *event.mutable_summary()->add_value();
            value.set_tag(concat("samples/", i));
            auto& image = *value.mutable_image();
            image.set_width(static_cast<std::int32_t>(picture.width));
            image.set_height(static_cast<std::int32_t>(picture.height));
            image.set_colorspace(static_cast<std::int32_t>(picture.channels));
            image.set_encoded_image_string(png_of(picture));
        }
        write(event);
    }

    void record(train::CheckpointWritten const& e) const {
        Scalars scalars(e.step);
        scalars.add("checkpoint/seconds", e.seconds).add("checkpoint/stall_s", e.stall_s);
        write(scalars);
    }

    void record(train::Ended const&) const {
        wire::HParams parameters;
        parameters.mutable_session_end_info()->set_status(1);
        parameters.mutable_session_end_info()->set_end_time_secs(seconds_since_1970());
        write("_hparams_/session_end_info", parameters);
    }

    // Nothing that has a place in TensorBoard.
    void record(train::CheckpointFailed const&) const {}
    void record(train::Remark const&) const {}
    void record(train::Profiled const&) const {}
    void record(train::Signalled const&) const {}

    config::Deck deck_;
    EventFile file_;
    DeviceGauge gauge_;
    bool revoked_ = false;
};

} // namespace

std::unique_ptr<train::Observer> make_tensorboard(config::Deck const& deck) {
    return std::make_unique<TensorBoard>(deck);
}

} // namespace lockstep::report
