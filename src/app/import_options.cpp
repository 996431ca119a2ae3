#include "import_options.hpp"

#include "base/number.hpp"
#include "base/text.hpp"
#include "import/hdf5_source.hpp"
#include "import/idx_source.hpp"
#include "import/image_source.hpp"
#include "import/series_source.hpp"
#include "import/speech_source.hpp"
#include "import/text_source.hpp"
#include "import/video_source.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <string_view>

namespace lockstep::app {

namespace {

constexpr auto with = ImportRule::Effect::with;
constexpr auto without = ImportRule::Effect::without;

Option size_option(std::uint64_t& width, std::uint64_t& height, std::string meaning) {
    return option::own("--size WxH", std::move(meaning), [&](std::string const& text) {
        auto const sides = split(text, 'x');
        auto const side = [&](std::size_t i) {
            auto const value =
                sides.size() == 2 ? number_of<std::uint64_t>(sides[i]) : std::nullopt;
            if (!value || *value < 1 || *value > 16384) {
                throw RefusedValue{"expected WIDTHxHEIGHT, with both numbers from 1 to 16384"};
            }
            return *value;
        };
        width = side(0);
        height = side(1);
    });
}

Option labels_option(import::LabelFile& labels) {
    return option::path("--labels FILE.csv",
                        "a table that gives the class of each file, in the columns file and label",
                        labels.path);
}

ImportKind idx_kind(ImportTold& told) {
    return {.name = "idx",
            .source = "a directory with the files train-images-idx3-ubyte[.gz] and "
                      "train-labels-idx1-ubyte[.gz], and the same two files with t10k instead of "
                      "train; or two files, written IMAGES,LABELS",
            .rows = {option::texts("--classes A,B,C",
                                   "names of the classes, in the order of their labels 0, 1, 2",
                                   told.idx.classes)},
            .make = [&told](auto const& source) {
                told.idx.source = source;
                return import::idx_source(told.idx);
            }};
}

ImportKind images_kind(ImportTold& told) {
    auto& images = told.images;
    return {.name = "images",
            .source = "a directory with one folder of PNG and JPEG files per class; the class "
                      "folders may be in folders named train, validation and test",
            .rows = {size_option(images.width, images.height, "scale all images to this size"),
                     option::flag("--center-crop",
                                  "keep the proportions: scale each image so that it covers the "
                                  "size, and cut off what is too much",
                                  images.center_crop),
                     option::whole("--shorter N",
                                   "pixels of the shorter side before the image is cut, such as "
                                   "256 for --size 224x224; default: as few as cover the size",
                                   images.shorter, {.min = 1, .max = 16384}),
                     option::flag("--gray", "convert colours to gray (one channel)", images.gray),
                     option::one_of("--alpha", {"drop", "blend", "keep"},
                                    "what to do with transparent pixels; drop: ignore alpha, and "
                                    "keep the stored colours; blend: blend the colours with black; "
                                    "keep: store alpha as an additional channel",
                                    told.alpha),
                     option::reals("--mean 0.485,0.456,0.406",
                                   "mean with which training normalizes the images, by channel, "
                                   "for weights that were trained with it; default: that of the "
                                   "training set",
                                   images.mean),
                     option::reals("--std 0.229,0.224,0.225", "the standard deviation, likewise",
                                   images.std),
                     labels_option(images.labels)},
            .rules = {{"--mean", with, "--std", "they are for the same weights"},
                      {"--std", with, "--mean", "they are for the same weights"},
                      {"--center-crop", with, "--size", "images are cut to a size"},
                      {"--shorter", with, "--center-crop",
                       "images that are not cut become as large as the size"}},
            .make = [&told, &images](auto const& source) {
                images.source = source;
                images.split_by = told.split_by;
                images.alpha = told.alpha == "keep"    ? import::Alpha::keep
                               : told.alpha == "blend" ? import::Alpha::blend
                                                       : import::Alpha::drop;
                return import::image_source(images);
            }};
}

ImportKind video_kind(ImportTold& told) {
    auto& video = told.video;
    return {.name = "video",
            .source = "a directory of video files, or of folders with one image per frame; folders "
                      "determine the classes and sets in the same way as for images",
            .rows = {option::whole("--frames N", "frames per clip", video.frames),
                     option::whole("--stride N",
                                   "frames from the start of one clip to the start of the next; 0: "
                                   "the length of a clip",
                                   video.stride, {.min = 0}),
                     size_option(video.width, video.height,
                                 concat("scale all frames to this size (", video.width, "x",
                                        video.height, ")")),
                     option::flag("--gray", "convert colours to gray (one channel)", video.gray),
                     labels_option(video.labels)},
            .make = [&told, &video](auto const& source) {
                video.source = source;
                video.split_by = told.split_by;
                return import::video_source(video);
            }};
}

ImportKind speech_kind(ImportTold& told) {
    auto& speech = told.speech;
    constexpr char const* no_texts = "only transcripts have texts that it applies to";
    return {
        .name = "speech",
        .source = "a directory of recordings (WAV, FLAC, …), all with the same sample rate",
        .rows = {option::path(
                     "--transcripts FILE",
                     "a table with the columns file and text, or a festvox file txt.done.data; "
                     "default: no texts, and folders determine the classes, as for images",
                     speech.transcripts),
                 option::text("--text COLUMN", "name of the column with the texts", speech.text),
                 option::one_of("--units", {"characters", "words"},
                                "unit of text that one symbol stands for", told.units),
                 option::flag("--lowercase", "convert the texts to lower case", speech.lowercase),
                 option::text("--drop CHARS",
                              "characters to remove from the texts; --lowercase applies afterwards",
                              speech.drop),
                 option::text("--symbols CHARS|A,B,C",
                              "all symbols; default: the symbols that occur in the texts",
                              speech.symbols),
                 option::whole("--mels N", "number of bands of the log-mel features", speech.bands,
                               {.max = 1024}),
                 option::flag("--raw", "store the recordings themselves instead of features",
                              speech.raw),
                 labels_option(speech.labels)},
        .rules = {{"--text", with, "--transcripts", no_texts},
                  {"--units", with, "--transcripts", no_texts},
                  {"--lowercase", with, "--transcripts", no_texts},
                  {"--drop", with, "--transcripts", no_texts},
                  {"--symbols", with, "--transcripts", no_texts},
                  {"--labels", without, "--transcripts",
                   "the targets are either classes or the symbols of transcripts"},
                  {"--mels", without, "--raw", "recordings themselves have no bands"}},
        .make = [&told, &speech](auto const& source) {
            speech.split_by = told.split_by;
            speech.words = told.units == "words";
            speech.source = source;
            return import::speech_source(speech);
        }};
}

ImportKind text_kind(ImportTold& told) {
    auto& text = told.text;
    return {
        .name = "text",
        .source = "a text file, or a directory of text files. Each file is one document, except "
                  "that each line of a .jsonl file is one document. Files in folders named train, "
                  "validation and test form the sets of these names",
        .rows = {option::path(
                     "--tokenizer FILE.json",
                     "tokenizer to use, in the format tokenizer.json, or a data set of texts whose "
                     "tokenizer to use; default: train a new tokenizer",
                     text.tokenizer),
                 option::whole("--vocabulary N", "number of tokens of a new tokenizer",
                               text.vocabulary, {.min = 257}),
                 option::texts("--endings .A,.B", "read only files whose names have these endings",
                               text.endings),
                 option::text("--text KEY", "key of the text in each line of a .jsonl file",
                              text.text),
                 option::text(
                     "--prompt KEY",
                     "key of the prompt in each line of a .jsonl file; the prompt comes "
                     "before the text and, with data.mask = learnt, is left out of the loss",
                     text.prompt)},
        .rules = {{"--vocabulary", without, "--tokenizer",
                   "a tokenizer that exists has its own number of tokens"}},
        .make = [&told, &text](auto const& source) {
            if (told.given.contains("--endings") && std::filesystem::is_regular_file(source)) {
                throw Error(ExitCode::usage,
                            {concat("--endings ", joined(text.endings, ",")),
                             concat(source.string(),
                                    " is a file, and only files of a directory are chosen by "
                                    "their endings"),
                             "Leave --endings out, or name a directory"});
            }
            text.source = source;
            for (auto& ending : text.endings) {
                ending = ending.starts_with('.') ? ending : concat(".", ending);
            }
            text.split_by = told.split_by;
            text.meanwhile = told.common.before_part;
            return import::text_source(text);
        }};
}

ImportKind series_kind(ImportTold& told) {
    auto& series = told.series;
    return {
        .name = "series",
        .source = "a CSV or TSV table whose first line names the columns",
        .rows = {option::texts("--columns A,B,C",
                               "input columns; default: all columns that no other option names",
                               series.columns),
                 option::texts("--categories A,B",
                               "columns of names, such as colours: each name becomes an input "
                               "COLUMN=NAME, which is 1 or 0",
                               series.categories),
                 option::text("--time COLUMN", "column of dates or numbers in ascending order",
                              series.time),
                 option::text("--group COLUMN", "make one series per value of this column",
                              series.group),
                 option::text("--target COLUMN",
                              "make each row a sample, with this column as the class of the sample",
                              series.target),
                 option::flag("--regression", "treat the target as a number instead of a class",
                              series.regression),
                 option::one_of("--type", {"f32", "f64"}, "type of the numbers", told.series_type),
                 option::flag("--fill-forward",
                              "fill an empty cell with the previous value in its column and series",
                              series.fill_forward)},
        .rules = {{"--regression", with, "--target",
                   "regression needs a column with the target values"},
                  {"--fill-forward", without, "--target",
                   "with --target, each row is a separate sample, so no earlier row can fill an "
                   "empty cell"},
                  {"--group", without, "--target",
                   "with --target, each row is a separate sample; to keep the rows of a group in "
                   "one set, use --split-by"}},
        .make = [&told, &series](auto const& source) {
            series.source = source;
            series.split_by = told.split_by;
            series.doubles = told.series_type == "f64";
            return import::series_source(series);
        }};
}

ImportKind hdf5_kind(ImportTold& told) {
    auto& hdf5 = told.hdf5;
    return {
        .name = "hdf5",
        .source = "any HDF5 file, which may be chunked or compressed. Its datasets have one entry "
                  "per sample. If samples have different numbers of rows, the dataset NAME_offsets "
                  "has the offsets of the samples in the dataset NAME",
        .rows = {option::texts("--inputs A,B",
                               "input datasets; if there is only one, it is renamed to inputs",
                               hdf5.inputs),
                 option::texts("--targets C,D",
                               "target datasets; if there is only one, it is renamed to targets",
                               hdf5.targets),
                 option::text("--weights NAME",
                              "dataset of sample weights, for data.sample-weights", hdf5.weights),
                 option::texts("--classes A,B,C",
                               "class names, if the first target is a class, has a class for "
                               "each position (a mask), or a value for each class; labels whose "
                               "classes the file names become the places of these names",
                               hdf5.classes),
                 option::reals("--mean 0.5",
                               "mean with which training normalizes the first input, one for all "
                               "or one for each channel, those of u8 divided by 255; default: the "
                               "attribute mean of the file, if it has one",
                               hdf5.mean),
                 option::reals("--std 0.25", "the standard deviation, likewise", hdf5.std),
                 option::text("--type u8|i16|i32|f32|f64", "convert the inputs to this type",
                              hdf5.type)},
        .rules = {{"--mean", with, "--std", "training needs both"},
                  {"--std", with, "--mean", "training needs both"}},
        .make = [&told, &hdf5](auto const& source) {
            hdf5.source = source;
            hdf5.split_by = told.split_by;
            return import::hdf5_source(hdf5);
        }};
}

std::string misuse(ImportRule const& rule) {
    return rule.only == with ? concat(rule.option, " was given without ", rule.other)
                             : concat(rule.option, " cannot be combined with ", rule.other);
}

void require_effect(std::set<std::string> const& given, std::vector<ImportRule> const& rules) {
    for (auto const& rule : rules) {
        if (given.contains(rule.option) && given.contains(rule.other) != (rule.only == with)) {
            throw Error(ExitCode::usage,
                        {misuse(rule), rule.why,
                         rule.only == with
                             ? concat("Add ", rule.other, ", or leave out ", rule.option)
                             : concat("Leave out ", rule.option, " or ", rule.other)});
        }
    }
}

/// Its name is noted, and an empty value, such as of a variable that is not set, is none.
Option noted(Option row, std::set<std::string>& given) {
    bool const is_flag = row.value.empty();
    row.takes_blank = true;
    row.take = [take = std::move(row.take), name = row.name, is_flag,
                &given](std::string const& value) {
        if (value.empty() && !is_flag) {
            throw RefusedValue{"its value is empty", concat("Write a value, or leave out ", name)};
        }
        given.insert(name);
        take(value);
    };
    return row;
}

/// The kinds that have this option.
std::vector<std::string> kinds_with(std::string const& option) {
    ImportTold told;
    std::vector<std::string> kinds;
    for (auto const& kind : import_kinds(told)) {
        if (std::ranges::find(kind.rows, option, &Option::name) != kind.rows.end()) {
            kinds.push_back(kind.name);
        }
    }
    return kinds;
}

} // namespace

std::vector<ImportKind> import_kinds(ImportTold& told) {
    return {idx_kind(told),  images_kind(told), video_kind(told), speech_kind(told),
            text_kind(told), series_kind(told), hdf5_kind(told)};
}

std::vector<std::string> import_kind_names() {
    ImportTold told;
    std::vector<std::string> names;
    for (auto const& kind : import_kinds(told)) {
        names.push_back(kind.name);
    }
    return names;
}

Options import_options(ImportTold& told, ImportKind const& kind) {
    auto& common = told.common;
    auto const split_by = [&told, name = kind.name](std::string const& column) {
        if (name == "idx") {
            throw RefusedValue{"idx files have no groups to split by"};
        }
        told.split_by = column;
        told.common.split.by_group = true;
    };
    Options options{
        .command =
            kind.name.empty() ? "lockstep data import" : concat("lockstep data import ", kind.name),
        .positions =
            kind.name.empty() ? Positions{"KIND SOURCE OUT", 3, 3} : Positions{"SOURCE OUT", 2, 2},
        .rows = {
            option::reals("--split 0.8,0.1,0.1",
                          "shares of the training, validation and test sets; each class is divided "
                          "into these shares",
                          common.split.shares),
            option::own("--split-by COLUMN|folder",
                        "keep samples with the same value of this column, or in the same folder, "
                        "in one set, such as all samples of a speaker; for hdf5, name a dataset "
                        "with one whole number per sample",
                        split_by),
            option::whole("--seed N", "random seed of the split", common.split.seed, {.min = 0}),
            option::whole("--shard-samples N", "write files of at most N samples each; 0: no limit",
                          common.shard_samples, {.min = 0}),
            option::whole("--deflate LEVEL",
                          "compression level from 1 to 9; compressed files are smaller, but take "
                          "longer to read; 0: no compression",
                          common.deflate, {.min = 0, .max = 9}),
            option::flag("--skip-bad", "skip files that cannot be read, and list them",
                         common.skip_bad),
            option::flag("--no-sources", "do not store from which file or line each sample came",
                         common.without_sources),
            option::flag("--overwrite", "replace existing data sets", common.overwrite)}};
    options.rows.insert(options.rows.end(), kind.rows.begin(), kind.rows.end());
    for (auto& row : options.rows) {
        row = noted(std::move(row), told.given);
    }
    return options;
}

std::vector<std::string> parse_import(ImportTold& told, ImportKind const& kind,
                                      std::vector<std::string> const& words) {
    std::vector<std::string> positions;
    try {
        positions = import_options(told, kind).parse(words).positions;
    } catch (Error const& error) {
        constexpr std::string_view unknown = "unknown option ";
        auto text = error.text();
        auto const kinds = text.what.starts_with(unknown)
                               ? kinds_with(text.what.substr(unknown.size()))
                               : std::vector<std::string>{};
        if (kinds.empty()) {
            throw;
        }
        text.why += concat(", but imports of ", list_text(kinds), " have it");
        throw Error(error.code(), text);
    }
    require_effect(told.given, {{"--split-by", with, "--split", "it says how to split"},
                                {"--seed", with, "--split", "it is the random seed of the split"}});
    require_effect(told.given, kind.rules);
    for (std::size_t i = 0; i < positions.size(); ++i) {
        if (positions[i].empty()) {
            throw Error(ExitCode::usage,
                        {i == 0 ? "SOURCE is empty" : "OUT is empty",
                         "an import needs the names of its source and of its output",
                         concat("Usage: ", import_options(told, kind).usage())});
        }
    }
    return positions;
}

} // namespace lockstep::app
