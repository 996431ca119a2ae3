#include "lockstep/task/task.hpp"

#include "catch.hpp"
#include "error_of.hpp"
#include "golden.hpp"

using namespace lockstep;

namespace {

/// Gives its inputs back as scores: rows of all samples become [n, outputs, rows].
class TransposingEcho : public nn::Model {
  public:
    torch::Tensor forward(nn::Fields const& inputs) override {
        return inputs[0].padded().transpose(1, 2);
    }
};

torch::Tensor wholes(std::vector<std::int64_t> const& values) {
    return torch::tensor(values, torch::kInt64);
}

task::Samples samples_of(std::vector<std::string> const& symbols) {
    task::Samples samples;
    samples.inputs = {{.name = "inputs",
                       .type = h5::Type::f32,
                       .shape = {symbols.size() + 1},
                       .whole = false,
                       .ragged = true}};
    samples.targets = {
        {.name = "targets", .type = h5::Type::i64, .shape = {}, .whole = true, .ragged = true}};
    samples.class_names = symbols;
    return samples;
}

std::unique_ptr<task::Task> ctc(std::vector<std::string> const& symbols,
                                config::OwnKeys const& keys = {}) {
    return task::make_task({"ctc", "", keys}, samples_of(symbols));
}

using Rows = std::vector<std::vector<std::int64_t>>;

nn::Field concatenated(Rows const& rows) {
    std::vector<std::int64_t> values;
    std::vector<std::int64_t> lengths;
    for (auto const& row : rows) {
        values.insert(values.end(), row.begin(), row.end());
        lengths.push_back(static_cast<std::int64_t>(row.size()));
    }
    return {wholes(values), wholes(lengths)};
}

/// Frames in which these outputs are certain.
nn::Field certain(Rows const& paths, std::int64_t outputs) {
    auto field = concatenated(paths);
    field.values = 20 * torch::one_hot(field.values, outputs).to(torch::kFloat32);
    return field;
}

task::Tensors batch_of(nn::Field const& inputs, Rows const& transcripts) {
    return {nn::Fields(std::vector<nn::Field>{inputs}),
            nn::Fields(std::vector<nn::Field>{concatenated(transcripts)})};
}

/// The batch of tests/golden/make_ctc_losses.py.
struct GoldenLosses {
    nlohmann::json json = test::golden("ctc_losses.json");
    Rows transcripts = json["transcripts"];
    std::vector<std::int64_t> lengths = json["lengths"];
    std::vector<double> losses = json["losses"];

    nn::Field inputs() const {
        auto const n = static_cast<std::int64_t>(lengths.size());
        auto const logits =
            2 * torch::sin(0.3 + 1.7 * torch::arange(n * 12 * 6, torch::kFloat64)).view({n, 12, 6});
        std::vector<torch::Tensor> own;
        for (std::int64_t i = 0; i < n; ++i) {
            own.push_back(logits[i].narrow(0, 0, lengths[static_cast<std::size_t>(i)]));
        }
        return {torch::cat(own).to(torch::kFloat32), wholes(lengths)};
    }
    double mean_of_symbols(std::size_t sample) const {
        return losses[sample] / std::max(1.0, static_cast<double>(transcripts[sample].size()));
    }
};

std::vector<std::string> const letters{"a", "b", "c", "d", "e"};

} // namespace

TEST_CASE("the loss is that of torch's reference, a sample's over its symbols") {
    GoldenLosses const golden;
    TransposingEcho model;
    double sum = 0;
    for (std::size_t i = 0; i < golden.losses.size(); ++i) {
        sum += golden.mean_of_symbols(i);
    }
    auto const loss =
        ctc(letters)->training_loss(model, batch_of(golden.inputs(), golden.transcripts));
    CHECK(loss.sum.item<double>() == Approx(sum).epsilon(1e-6));
    CHECK(loss.weight == 4);
}

TEST_CASE("a batch's sums are those of its parts, however it is cut") {
    GoldenLosses const golden;
    TransposingEcho model;
    auto const task = ctc(letters);
    auto const whole = task->evaluate(model, batch_of(golden.inputs(), golden.transcripts));
    task::Tally sum{0, 0, std::vector<std::int64_t>(task->counts(), 0)};
    auto const inputs = golden.inputs();
    std::int64_t row = 0;
    for (std::size_t i = 0; i < golden.lengths.size(); ++i) {
        nn::Field const own{inputs.values.narrow(0, row, golden.lengths[i]),
                            wholes({golden.lengths[i]})};
        row += golden.lengths[i];
        auto const part = task->evaluate(model, batch_of(own, {golden.transcripts[i]}));
        CHECK(part.loss_sum == Approx(golden.mean_of_symbols(i)).epsilon(1e-6));
        sum.loss_sum += part.loss_sum;
        sum.weight += part.weight;
        for (std::size_t at = 0; at < sum.counts.size(); ++at) {
            sum.counts[at] += part.counts[at];
        }
    }
    CHECK(sum.counts == whole.counts);
    CHECK(sum.weight == whole.weight);
    CHECK(sum.loss_sum == Approx(whole.loss_sum).epsilon(1e-6));
}

TEST_CASE("a transcript that is too long for its recording is counted and changes nothing else") {
    TransposingEcho model;
    auto const task = ctc({"a", "b"});
    // The second has three frames: a, a would fit, a a b not, since two of a kind need a blank.
    Rows const paths{{0, 2, 1, 1}, {0, 0, 1}};
    auto inputs = certain(paths, 3);
    inputs.values.requires_grad_();
    auto const batch = batch_of(inputs, {{0, 1}, {0, 0, 1}});
    auto const loss = task->training_loss(model, batch);
    loss.sum.backward();
    CHECK(loss.weight == 1);
    CHECK(std::isfinite(loss.sum.item<double>()));
    CHECK(inputs.values.grad().slice(0, 4).abs().max().item<double>() == 0);
    CHECK(inputs.values.grad().isfinite().all().item<bool>());
    auto const tally = task->evaluate(model, batch);
    CHECK(tally.weight == 1);
    CHECK(task->metrics(tally).at("too-long") == 1);
    auto const alone = task->evaluate(model, batch_of(certain({paths[0]}, 3), {{0, 1}}));
    CHECK(alone.loss_sum == Approx(tally.loss_sum));
    CHECK(task->metrics(alone).count("too-long") == 0);
}

TEST_CASE("error rates are edits over symbols and over words, whatever the batch") {
    TransposingEcho model;
    auto const task = ctc({" ", "a", "b"});
    Rows const heard{{1, 3, 1, 0, 2, 3}, {2, 2, 3, 3}};
    // "aa b" for "ab b", and "b" for "b a": 1 of 4 and 2 of 3 symbols, 1 of 2 and 1 of 2 words.
    auto const tally =
        task->evaluate(model, batch_of(certain(heard, 4), {{1, 2, 0, 2}, {2, 0, 1}}));
    auto const metrics = task->metrics(tally);
    CHECK(metrics.at("error-rate") == 3.0 / 7);
    CHECK(metrics.at("wer") == 2.0 / 4);
    auto const phones = ctc({"a", "b", "c"});
    auto const none = phones->evaluate(model, batch_of(certain({{3, 3}}, 4), {{1}}));
    CHECK(phones->metrics(none).at("error-rate") == 1);
    CHECK(phones->metrics(none).count("wer") == 0);
}

TEST_CASE("a beam takes all alignments of a transcript together") {
    TransposingEcho model;
    // Frames of 0.4 a, 0.6 blank: the blank is the most probable path, "a" the transcript.
    auto const scores = torch::log(torch::tensor({{0.4F, 0.6F}, {0.4F, 0.6F}}));
    auto const batch = batch_of({scores, wholes({2})}, {{0}});
    auto const rate = [&](std::string const& beam) {
        auto const task = ctc({"a"}, {{"beam", beam}});
        return task->metrics(task->evaluate(model, batch)).at("error-rate");
    };
    CHECK(rate("0") == 1);
    CHECK(rate("4") == 0);
}

TEST_CASE("what is no transcript is refused") {
    TransposingEcho model;
    auto const unknown = test::error_of([&] {
        ctc({"a"})->training_loss(model, batch_of(certain({{0, 1}}, 2), {{1}}));
    });
    CHECK(unknown.code() == ExitCode::data);
    CHECK(test::says(unknown, "symbol 1"));
    auto samples = samples_of({"a"});
    samples.targets.front().ragged = false;
    auto const labels = test::error_of([&] { task::make_task({"ctc", "", {}}, samples); });
    CHECK(labels.code() == ExitCode::data);
    CHECK(test::says(labels, "--transcripts"));
}
