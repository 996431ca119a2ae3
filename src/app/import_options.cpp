#include "import_options.hpp"

#include "base/number.hpp"
#include "base/text.hpp"

namespace lockstep::app {

namespace {

Option size_option(std::uint64_t& width, std::uint64_t& height, std::string meaning) {
    return option::own("--size WxH", std::move(meaning), [&](std::string const& text) {
        auto const sides = split(text, 'x');
        auto const side = [&](std::size_t i) {
            auto const value =
                sides.size() == 2 ? number_of<std::uint64_t>(sides[i]) : std::nullopt;
            if (!value || *value < 1 || *value > 16384) {
                throw RefusedValue{"expected WIDTHxHEIGHT, each 1 to 16384"};
            }
            return *value;
        };
        width = side(0);
        height = side(1);
    });
}

Option labels_option(import::LabelFile& labels) {
    return option::path("--labels FILE.csv", "the classes come from its columns file and label",
                        labels.path);
}

ImportKind idx_kind(ImportTold& told) {
    return {
        .name = "idx",
        .source = "a directory with train-images-idx3-ubyte[.gz], "
                  "train-labels-idx1-ubyte[.gz] and the t10k- pair, or IMAGES,LABELS",
        .rows = {option::texts("--classes A,B,C", "names of the labels 0, 1, 2", told.idx.classes)},
        .make = [&told](auto const& source) {
            told.idx.source = source;
            return import::idx_source(told.idx);
        }};
}

ImportKind images_kind(ImportTold& told) {
    auto& images = told.images;
    return {.name = "images",
            .source = "a directory with a folder of PNG and JPEG files for each class, below "
                      "train, validation and test where these are there",
            .rows = {size_option(images.width, images.height, "scale all to this size"),
                     option::flag("--gray", "one channel", images.gray),
                     option::one_of("--alpha", {"drop", "blend", "keep"},
                                    "transparent pixels: colours as stored, colours blended with "
                                    "black, or alpha as one more channel",
                                    told.alpha),
                     labels_option(images.labels)},
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
            .source = "a directory of video files, or of folders with an image for each frame, "
                      "ordered and labelled as images are",
            .rows = {option::whole("--frames N", "frames of a clip", video.frames),
                     option::whole("--stride N", "frames between clip starts; 0: clip length",
                                   video.stride, {.least = 0}),
                     size_option(
                         video.width, video.height,
                         concat("scale all to this size (", video.width, "x", video.height, ")")),
                     option::flag("--gray", "one channel", video.gray),
                     labels_option(video.labels)},
            .make = [&told, &video](auto const& source) {
                video.source = source;
                video.split_by = told.split_by;
                return import::video_source(video);
            }};
}

ImportKind speech_kind(ImportTold& told) {
    auto& speech = told.speech;
    return {
        .name = "speech",
        .source = "the directory of the recordings (WAV, FLAC, …), all of one rate",
        .rows = {option::path("--transcripts FILE",
                              "a table with columns file and text, or festvox' txt.done.data; "
                              "without it, classes as of images",
                              speech.transcripts),
                 option::text("--text COLUMN", "the table's column with the texts", speech.text),
                 option::one_of("--units", {"characters", "words"}, "what a symbol is", told.units),
                 option::flag("--lowercase", "convert texts to lower case first", speech.lowercase),
                 option::text("--drop CHARS", "remove these from the texts first", speech.drop),
                 option::text("--symbols CHARS|A,B,C",
                              "the table of symbols; default: all that occur", speech.symbols),
                 option::whole("--mels N", "bands of the log-mel features", speech.bands,
                               {.most = 1024}),
                 option::flag("--raw", "the recordings themselves instead", speech.raw),
                 labels_option(speech.labels)},
        .make = [&told, &speech](auto const& source) {
            speech.split_by = told.split_by;
            speech.words = told.units == "words";
            speech.source = source;
            return import::speech_source(speech);
        }};
}

ImportKind series_kind(ImportTold& told) {
    auto& series = told.series;
    return {
        .name = "series",
        .source = "a CSV or TSV table whose first line names the columns",
        .rows = {option::texts("--columns A,B,C",
                               "the inputs; default: all columns not named by other options",
                               series.columns),
                 option::text("--time COLUMN", "dates or numbers that ascend", series.time),
                 option::text("--group COLUMN", "a series for each of its values", series.group),
                 option::text("--target COLUMN", "rows are samples, and this is their class",
                              series.target),
                 option::flag("--regression", "the target is a number", series.regression),
                 option::one_of("--type", {"f32", "f64"}, "of the numbers", told.series_type),
                 option::flag("--fill-forward", "an empty cell of a series has the value above it",
                              series.fill_forward)},
        .make = [&told, &series](auto const& source) {
            series.source = source;
            series.split_by = told.split_by;
            series.doubles = told.series_type == "f64";
            return import::series_source(series);
        }};
}

ImportKind hdf5_kind(ImportTold& told) {
    auto& hdf5 = told.hdf5;
    return {.name = "hdf5",
            .source = "any HDF5 file with one entry per sample, chunked or compressed too, or with "
                      "NAME_offsets where a sample has a number of rows",
            .rows = {option::texts("--inputs A,B", "datasets; the only one becomes inputs",
                                   hdf5.inputs),
                     option::texts("--targets C,D", "datasets; the only one becomes targets",
                                   hdf5.targets),
                     option::text("--weights NAME", "of the samples, for data.sample-weights",
                                  hdf5.weights),
                     option::texts("--classes A,B,C", "names, where the first target is a class",
                                   hdf5.classes),
                     option::text("--type u8|i16|i32|f32|f64", "convert the inputs", hdf5.type)},
            .make = [&told, &hdf5](auto const& source) {
                hdf5.source = source;
                hdf5.split_by = told.split_by;
                return import::hdf5_source(hdf5);
            }};
}

} // namespace

std::vector<ImportKind> import_kinds(ImportTold& told) {
    return {idx_kind(told),    images_kind(told), video_kind(told),
            speech_kind(told), series_kind(told), hdf5_kind(told)};
}

Options import_options(ImportTold& told, ImportKind const& kind) {
    auto& common = told.common;
    auto const split_by = [&told, name = kind.name](std::string const& column) {
        if (name == "idx") {
            throw RefusedValue{"expected nothing for idx, which has no groups"};
        }
        told.split_by = column;
        told.common.split.by_group = true;
    };
    Options options{
        .command = "lockstep data import",
        .positions = {"KIND SOURCE OUT", 3, 3},
        .rows = {
            option::reals("--split 0.8,0.1,0.1",
                          "shares of train, validation and test, of each class alike",
                          common.split.shares),
            option::own("--split-by COLUMN|folder",
                        "keep together what is equal there: a speaker, a video; of HDF5 files "
                        "a dataset of one whole number per sample",
                        split_by),
            option::whole("--seed N", "of the split", common.split.seed, {.least = 0}),
            option::whole("--shard-samples N", "files of at most N samples; 0: of any number",
                          common.shard_samples, {.least = 0}),
            option::whole("--deflate LEVEL",
                          "compress, 1 to 9: smaller files, which take longer to read",
                          common.deflate, {.least = 0, .most = 9}),
            option::flag("--skip-bad", "skip files that cannot be read, and list them",
                         common.skip_bad),
            option::flag("--overwrite", "replace the data sets that are there", common.overwrite)}};
    options.rows.insert(options.rows.end(), kind.rows.begin(), kind.rows.end());
    return options;
}

} // namespace lockstep::app
