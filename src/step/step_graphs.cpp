#include "step_graphs.hpp"

#include "base/recorder.hpp"
#include "base/text.hpp"
#include "device/device_memory.hpp"
#include "lockstep/base/error.hpp"

#include <c10/core/AutogradState.h>

#include <algorithm>

namespace lockstep::train {

namespace {

constexpr int passes_before = 2; // which run eagerly
constexpr std::size_t max_forms = 16;

bool is_on_device(nn::Fields const& fields) {
    return std::ranges::all_of(fields, [](nn::Field const& field) {
        return !field.values.is_cpu() && !field.lengths.defined();
    });
}

void append_form(std::string& form, nn::Fields const& fields) {
    for (auto const& field : fields) {
        form += concat(c10::toString(field.values.scalar_type()), field.values.sizes().size());
        for (auto const size : field.values.sizes()) {
            form += concat(" ", size);
        }
        form += '\n';
    }
}

/// Passes of one form do the same work on the same memory.
std::string form_of(StepGraphs::Pass const& pass) {
    std::string form = concat(reinterpret_cast<std::uintptr_t>(pass.sink.target()), "\n");
    append_form(form, pass.batch.inputs);
    append_form(form, pass.batch.targets);
    auto const& written = pass.sink.written();
    return form.append(written.begin(), written.end());
}

nn::Fields like(nn::Fields const& fields) {
    std::vector<nn::Field> made;
    for (auto const& field : fields) {
        made.push_back({torch::empty_like(field.values, torch::MemoryFormat::Contiguous), {}});
    }
    return nn::Fields(std::move(made));
}

void copy(nn::Fields const& from, nn::Fields const& to) {
    for (std::size_t at = 0; at < from.size(); ++at) {
        to[at].values.copy_(from[at].values);
    }
}

/// Bytes that the device lacks for a graph: beside what the graph keeps, a pass must still be able
/// to run eagerly, as evaluations and batches of other shapes do, with some of the device's memory
/// left. A pass needs at most what was allocated beyond today's memory since the start.
std::uint64_t missing_memory(torch::Device device) {
    auto const memory = device_memory(device);
    auto const place = device_space(device);
    auto const available =
        place.free + static_cast<std::uint64_t>(memory.reserved - memory.allocated);
    auto const pass =
        static_cast<std::uint64_t>(std::max(memory.peak - memory.allocated, std::int64_t{0}));
    constexpr std::uint64_t left_over = 16; // one of so many parts of the device
    auto const needed = 2 * pass + place.all / left_over;
    return needed > available ? needed - available : 0;
}

torch::Tensor copy_of(torch::Tensor const& values) {
    return values.defined() ? values.clone() : values;
}

} // namespace

StepGraphs::OneThread::OneThread()
    : before_(c10::AutogradState::get_tls_state().get_multithreading_enabled()) {
    c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
}

StepGraphs::OneThread::~OneThread() {
    c10::AutogradState::get_tls_state().set_multithreading_enabled(before_);
}

StepGraphs::Recording* StepGraphs::recording_of(Pass const& pass) {
    if (!is_on_device(pass.batch.inputs) || !is_on_device(pass.batch.targets)) {
        refuse("batches of samples with different lengths run eagerly");
        return nullptr;
    }
    auto const form = form_of(pass);
    if (auto const found = recordings_.find(form); found != recordings_.end()) {
        return found->second.failed ? nullptr : &found->second;
    }
    if (recordings_.size() == max_forms) {
        refuse(concat(
            "only the first ", max_forms,
            " shapes of batches are recorded as graphs, and batches of other shapes run eagerly"));
        return nullptr;
    }
    return &recordings_[form];
}

/// Said once: it is so in every step.
void StepGraphs::refuse(std::string const& what) {
    if (refused_.insert(what).second) {
        use_.remark = concat("run.graphs: ", what);
    }
}

std::optional<task::Loss> StepGraphs::run(Pass const& pass, std::function<void()> const& eager) {
    auto* const recording = recording_of(pass);
    if (recording != nullptr && ++recording->passes > passes_before &&
        recording->segments.empty()) {
        auto const missing =
            left_ == Memory::enough ? missing_memory(pass.batch.inputs[0].values.device()) : 0;
        if (missing > 0) {
            give_up(*recording, pass,
                    concat("a graph needs ", bytes_text(missing), " more memory of the device"));
        } else {
            record(*recording, pass);
        }
    }
    if (recording == nullptr || recording->segments.empty()) {
        OneThread const one_thread;
        std::optional<nn::DropoutMasks::Scope> noting;
        if (recording != nullptr && !recording->failed) {
            noting.emplace(recording->masks, nn::DropoutMasks::Pass::noted);
        }
        ++use_.eager;
        eager();
        return std::nullopt;
    }
    Scope const scope("graph of forward and backward");
    torch::NoGradGuard const no_grad;
    fill(*recording, pass);
    for (auto const& segment : recording->segments) {
        segment.graph->replay();
        pass.sink.replayed(segment.last);
    }
    pass.sink.replayed(recording->written);
    ++use_.replayed;
    auto const& loss = recording->loss;
    return task::Loss{copy_of(loss.sum), loss.weight, copy_of(loss.figures), copy_of(loss.counts)};
}

/// What differs between passes.
void StepGraphs::fill(Recording& recording, Pass const& pass) {
    copy(pass.batch.inputs, recording.batch.inputs);
    copy(pass.batch.targets, recording.batch.targets);
    recording.masks.draw(pass.random_key);
    recording.scale.fill_(pass.loss_scale);
}

void StepGraphs::record(Recording& recording, Pass const& pass) {
    Scope const scope("recording a graph");
    bool begun = false;
    try {
        release_device_cache(pass.batch.inputs[0].values.device()); // of passes that ran eagerly
        {
            torch::NoGradGuard const no_grad;
            recording.batch = {like(pass.batch.inputs), like(pass.batch.targets)};
            recording.scale = torch::ones(
                {}, torch::dtype(torch::kFloat32).device(pass.batch.inputs[0].values.device()));
            fill(recording, pass); // makes the memory of the masks
        }
        OneThread const one_thread;
        nn::DropoutMasks::Scope const recorded(recording.masks, nn::DropoutMasks::Pass::recorded);
        auto const cut = [&](int /*first*/, int last) {
            if (begun) { // else they are of frozen parameters alone
                recording.segments.push_back({recorder_->end(), last});
                begun = last < pass.sink.buckets(); // backward ends with the last gradient
                if (begun) {
                    recorder_->begin();
                }
            }
        };
        recording.written = pass.sink.record(cut, [&] {
            recorder_->begin();
            begun = true;
            auto const loss = pass.compute(recording.batch, recording.scale);
            recording.loss = {loss.sum.detach(), loss.weight, loss.figures, loss.counts};
        });
        if (begun) {
            recording.segments.push_back({recorder_->end(), 0});
        }
    } catch (std::exception const& error) {
        recorder_->abandon();
        give_up(recording, pass,
                concat("the device could not record them: ", first_line(error.what())));
        release_device_cache(pass.batch.inputs[0].values.device());
    }
}

void StepGraphs::give_up(Recording& recording, Pass const& pass, std::string const& why) {
    recording = {};
    recording.failed = true;
    refuse(concat("batches of ", nn::sizes_text(pass.batch.inputs[0].values.sizes()),
                  " run eagerly, because ", why));
}

} // namespace lockstep::train
