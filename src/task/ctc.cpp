#include "base/text.hpp"
#include "data/lengths.hpp"
#include "lockstep/base/error.hpp"
#include "nn/sequence_model.hpp"
#include "task/ctc_decoding.hpp"
#include "task/edit_distance.hpp"
#include "task/remarks.hpp"

#include <algorithm>

#include "tasks.hpp"

namespace lockstep::task {

namespace {

/// Places of Tally::counts.
enum Count : std::size_t { edits, symbols, edited_words, words, too_long, number_of_counts };

void require_transcripts(Samples const& samples) {
    auto const fits = [](data::FieldInfo const& field, bool whole) {
        return field.ragged && field.whole == whole;
    };
    bool const good = samples.targets.size() == 1 && fits(samples.targets.front(), true) &&
                      samples.targets.front().shape.empty() && !samples.inputs.empty() &&
                      fits(samples.inputs.front(), false) && !samples.class_names.empty();
    if (!good) {
        throw Error(
            ExitCode::data,
            {"data.train does not fit the task",
             "task.kind = ctc needs samples that each have their own number of frames, a "
             "transcript for each sample, and files that name the symbols of the transcripts",
             "Import recordings (lockstep data import speech … --transcripts FILE)"});
    }
}

/// Frames that a transcript takes at least: one a symbol, and a blank between two of a kind.
std::int64_t frames_needed(std::span<std::int64_t const> transcript) {
    auto needed = static_cast<std::int64_t>(transcript.size());
    for (std::size_t i = 1; i < transcript.size(); ++i) {
        needed += transcript[i] == transcript[i - 1] ? 1 : 0;
    }
    return needed;
}

/// What a model gives of samples of so many rows each; of one that does not say, as many frames.
torch::Tensor frames_of_rows(nn::Model const& model, torch::Tensor const& rows) {
    auto const* const sequence = dynamic_cast<nn::SequenceModel const*>(&model);
    return sequence == nullptr ? rows : sequence->output_lengths(rows);
}

/// A batch's transcripts and, for each frame of each sample, what the network says, on the CPU.
struct Spoken {
    torch::Tensor scores;  ///< [frames, n, symbols + 1] logarithms of probabilities
    torch::Tensor frames;  ///< [n] of each sample
    torch::Tensor targets; ///< of all samples, one after the other
    torch::Tensor lengths; ///< [n] of the transcripts

    std::int64_t samples() const { return frames.size(0); }
    std::int64_t frames_of(std::int64_t sample) const {
        return frames.const_data_ptr<std::int64_t>()[sample];
    }
    /// Calls `use` with the number and the transcript of each sample.
    template <class Use>
    void for_each(Use use) const {
        auto const* at = targets.const_data_ptr<std::int64_t>();
        for (std::int64_t i = 0; i < samples(); ++i) {
            auto const length = lengths.const_data_ptr<std::int64_t>()[i];
            use(i, std::span(at, static_cast<std::size_t>(length)));
            at += length;
        }
    }
};

/// Connectionist temporal classification (Graves et al., ICML 2006): the loss of a sample is the
/// negative logarithm of the probability of all its alignments together, over the symbols of its
/// transcript; that of a batch the mean over samples, as torch's reduction "mean" has it. The blank
/// is the last of the outputs. A transcript that has too few frames has no alignment: its sample is
/// counted, and otherwise as if it were not there.
class Ctc : public Task, public Remarks {
  public:
    Ctc(config::OwnValues const& values, Samples const& samples)
        : symbols_(static_cast<std::int64_t>(samples.class_names.size())),
          beam_(static_cast<std::size_t>(values.integer("beam", 0))), names_(samples.class_names) {
        require_transcripts(samples);
        auto const blank = std::find(names_.begin(), names_.end(), " ");
        space_ = blank == names_.end() ? -1 : blank - names_.begin();
        words_ = space_ < 0 && std::ranges::any_of(names_, [](auto const& name) {
                     return std::ranges::count_if(name, [](char byte) {
                                return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
                            }) > 1; // UTF-8 code points
                 });
    }

    Loss training_loss(nn::Model& model, Tensors const& batch) const override {
        auto const spoken = listen(model, batch);
        return {losses(spoken).sum(), static_cast<double>(learnable(spoken))};
    }

    Tally evaluate(nn::Model& model, Tensors const& batch) const override {
        auto const spoken = listen(model, batch);
        auto const weight = learnable(spoken);
        Tally tally{losses(spoken).sum(torch::kFloat64).item<double>(), static_cast<double>(weight),
                    std::vector<std::int64_t>(counts(), 0)};
        tally.counts[Count::too_long] = spoken.samples() - weight;
        spoken.for_each([&](std::int64_t sample, std::span<std::int64_t const> transcript) {
            auto const heard = decode(spoken, sample);
            tally.counts[Count::edits] += edit_distance(transcript, heard);
            tally.counts[Count::symbols] += static_cast<std::int64_t>(transcript.size());
            auto const by_words = word_edits(transcript, heard, space_);
            tally.counts[Count::edited_words] += by_words.edits;
            tally.counts[Count::words] += by_words.words;
        });
        return tally;
    }

    Predicts predicts() const override { return Predicts::transcripts; }
    Prediction predict(nn::Model& model, nn::Fields const& inputs) const override {
        auto const spoken = listen(model, inputs);
        Prediction prediction;
        for (std::int64_t sample = 0; sample < spoken.samples(); ++sample) {
            std::vector<std::string> heard;
            for (auto const symbol : decode(spoken, sample)) {
                heard.push_back(names_[static_cast<std::size_t>(symbol)]);
            }
            prediction.texts.push_back(joined(heard, words_ ? " " : ""));
        }
        return prediction;
    }

    std::string remark(config::Data const& data, nn::Model const& model) const override {
        data::Dataset const dataset({data.train, data.inputs, data.targets});
        auto const bad = too_long_transcripts(dataset, data, model);
        if (bad.empty()) {
            return {};
        }
        auto const all = static_cast<std::int64_t>(bad.size()) == dataset.samples();
        bool const one = bad.size() == 1;
        auto const text =
            concat(all && !one ? "all " : "", bad.size(),
                   one ? " transcript of data.train is too long for its recording"
                       : " transcripts of data.train are too long for their recordings");
        if (all) {
            throw Error(
                ExitCode::data,
                {text, "each symbol of a transcript needs at least one frame of the model's output",
                 "Check that each transcript belongs to its recording, or lower model.stride"});
        }
        std::vector<std::string> some;
        for (auto const sample : bad) {
            some.push_back(some.size() < 10 ? std::to_string(sample) : "…");
            if (some.size() > 10) {
                break;
            }
        }
        return concat(text, one ? " and is left out: sample " : " and are left out: samples ",
                      joined(some, ", "));
    }

    std::int64_t outputs() const override { return symbols_ + 1; }
    std::size_t counts() const override { return Count::number_of_counts; }

    Metrics metrics(Tally const& total) const override {
        auto const rate = [&](Count of, Count all) {
            return static_cast<double>(total.counts[of]) /
                   static_cast<double>(std::max<std::int64_t>(total.counts[all], 1));
        };
        Metrics metrics{{"error-rate", rate(Count::edits, Count::symbols)}};
        if (space_ >= 0) {
            metrics["wer"] = rate(Count::edited_words, Count::words);
        }
        if (total.counts[Count::too_long] > 0) {
            metrics["too-long"] = static_cast<double>(total.counts[Count::too_long]);
        }
        return metrics;
    }

  private:
    /// Without transcripts.
    Spoken listen(nn::Model& model, nn::Fields const& inputs) const {
        auto const outputs = model.forward(inputs).to(torch::kFloat32);
        if (outputs.dim() != 3 || outputs.size(1) != this->outputs()) {
            throw Error(ExitCode::usage,
                        {"task.kind = ctc",
                         concat("the model returns the shape ", nn::sizes_text(outputs.sizes()),
                                ", but the task needs the shape [samples, ", this->outputs(),
                                ", frames], with scores of each symbol and of the blank"),
                         "Choose a model that returns these scores, for example lmu-asr"});
        }
        // The loss is computed on the host, since its gradient has no fixed order on a GPU.
        auto const scores = torch::log_softmax(outputs, 1).permute({2, 0, 1}).to(torch::kCPU);
        return {scores, frames_of_rows(model, inputs[0].lengths), {}, {}};
    }
    Spoken listen(nn::Model& model, Tensors const& batch) const {
        auto spoken = listen(model, batch.inputs);
        auto const& targets = batch.targets[0];
        spoken.targets = targets.values.to(torch::kCPU).contiguous();
        spoken.lengths = targets.lengths;
        require_symbols(spoken.targets);
        return spoken;
    }

    /// Only those that may be are read.
    static std::vector<std::int64_t> too_long_transcripts(data::Dataset const& dataset,
                                                          config::Data const& data,
                                                          nn::Model const& model) {
        auto const symbols = data::ragged_lengths(data.train, dataset.targets().front().name);
        auto const rows = data::ragged_lengths(data.train, dataset.inputs().front().name);
        auto const frames = frames_of_rows(model, torch::tensor(rows, torch::kInt64));
        auto const* const frames_of = frames.const_data_ptr<std::int64_t>();
        std::vector<std::int64_t> found;
        data::Batch batch;
        data::Scratch scratch;
        for (std::size_t sample = 0; sample < symbols.size(); ++sample) {
            if (2 * symbols[sample] - 1 > frames_of[sample]) {
                batch.indices = {static_cast<std::int64_t>(sample)};
                dataset.read(batch, scratch);
                if (frames_needed(batch.targets()) > frames_of[sample]) {
                    found.push_back(batch.indices.front());
                }
            }
        }
        return found;
    }

    void require_symbols(torch::Tensor const& targets) const {
        auto const wrong = targets.masked_select(targets.lt(0).logical_or(targets.ge(symbols_)));
        if (wrong.numel() > 0) {
            throw Error(ExitCode::data,
                        {concat("a transcript has symbol ", wrong[0].item<std::int64_t>()),
                         concat("the data files list only ", amount_of(symbols_, "symbol"),
                                ", numbered from 0"),
                         "Import the training, validation and test recordings again with the same "
                         "--symbols"});
        }
    }

    /// The loss of each sample; 0, with a gradient of 0, where there is no alignment.
    torch::Tensor losses(Spoken const& spoken) const {
        auto const losses =
            torch::ctc_loss(spoken.scores, spoken.targets, spoken.frames, spoken.lengths, symbols_,
                            at::Reduction::None, /*zero_infinity=*/true);
        return losses / spoken.lengths.clamp_min(1).to(losses.options());
    }

    static std::int64_t learnable(Spoken const& spoken) {
        std::int64_t count = 0;
        spoken.for_each([&](std::int64_t sample, std::span<std::int64_t const> transcript) {
            count += frames_needed(transcript) <= spoken.frames_of(sample) ? 1 : 0;
        });
        return count;
    }

    std::vector<std::int64_t> decode(Spoken const& spoken, std::int64_t sample) const {
        auto const scores =
            spoken.scores.select(1, sample).narrow(0, 0, spoken.frames_of(sample)).contiguous();
        FrameScores const frames{
            {scores.const_data_ptr<float>(), static_cast<std::size_t>(scores.numel())}, symbols_};
        return beam_ == 0 ? decode_greedily(frames) : decode_by_prefixes(frames, beam_);
    }

    std::int64_t symbols_;
    std::size_t beam_;
    std::vector<std::string> names_; ///< of the symbols
    std::int64_t space_;             ///< the symbol that parts words; -1: there is none
    bool words_ = false;             ///< symbols are words, which blanks part in a text
};

} // namespace

TaskKind ctc_kind() {
    return {
        "ctc",
        "transcripts of recordings, with connectionist temporal classification (CTC) as the loss",
        {{"beam", "0", "beam width of the decoder; 0: greedy decoding"}},
        {{"error-rate", false}, {"wer", false}, {"loss", false}},
        [](config::OwnValues const& values, Samples const& samples) {
            return std::make_unique<Ctc>(values, samples);
        },
        nullptr,
        nullptr,
        data::Labels::none};
}

} // namespace lockstep::task
