#include "data_import_help.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep::app {

namespace {

constexpr std::array<std::pair<char const*, char const*>, 6> kinds{
    {{"idx",
      R"(  idx     SOURCE: a directory with train-images-idx3-ubyte[.gz], train-labels-idx1-ubyte[.gz] and
          the t10k- pair, or IMAGES,LABELS
            --classes A,B,C           names of the labels 0, 1, 2
)"},
     {"images",
      R"(  images  SOURCE: a directory with a folder of PNG and JPEG files for each class, below train,
          validation and test where these are there
            --size WxH                scale all to this size
            --gray                    one channel
            --alpha drop|blend|keep   transparent pixels: colours as they are stored, before black,
                                      or with a channel more (drop)
            --labels FILE.csv         the classes come from its columns file and label
)"},
     {"video",
      R"(  video   SOURCE: a directory of video files, or of folders with an image for each frame, ordered
          and labelled as images are
            --frames 17               frames of a clip
            --stride N                frames from clip to clip (those of a clip)
            --size 256x256 --gray --labels FILE.csv
)"},
     {"speech",
      R"(  speech  SOURCE: the directory of the recordings (WAV, FLAC, …), all of one rate
            --transcripts FILE        a table with columns file and text, or festvox'
                                      txt.done.data; without it, classes as of images
            --text COLUMN             another column than text
            --units characters|words  what a symbol is (characters)
            --lowercase --drop CHARS  change the texts before
            --symbols CHARS|A,B,C     the table of symbols; all that occur without it
            --mels 40 | --raw         log-mel features, or the recordings themselves
            --labels FILE.csv         the classes come from its columns file and label
)"},
     {"series",
      R"(  series  SOURCE: a CSV or TSV table whose first line names the columns
            --columns A,B,C           the inputs; all others than those below without it
            --time COLUMN             dates or numbers that ascend
            --group COLUMN            a series for each of its values
            --target COLUMN           rows are samples, and this is their class
            --regression              the target is a number
            --type f32|f64            of the numbers (f32)
            --fill-forward            an empty cell of a series has the value above it
)"},
     {"hdf5",
      R"(  hdf5    SOURCE: any HDF5 file with one entry a sample, chunked or compressed too, or with
          NAME_offsets where a sample has a number of rows
            --inputs A,B --targets C,D  datasets; the only ones become inputs and targets
            --weights NAME            of the samples, for data.sample-weights
            --classes A,B,C           names, where the first target is a class
            --type u8|i16|i32|f32|f64 convert the inputs
)"}}};

constexpr char const* common = R"(
OUT is a file or, where there are several sets, a directory. A name with a comma in a list is
written in double quotes, a quote in it twice: --classes 'cat,"dog, wolf"'.

Options of every kind
  --split 0.8,0.1,0.1       shares of train, validation and test, of each class alike
  --split-by COLUMN|folder  keep together what is equal there: a speaker, a video; of HDF5
                            files a dataset of one whole number per sample
  --seed N                  of the split (0)
  --shard-samples N         files of at most N samples
  --deflate LEVEL           compress, 1 to 9: smaller files, which take longer to read
  --skip-bad                skip files that cannot be read, and list them
  --overwrite               replace the data sets that are there

An interrupted import resumes where it was when it is given the same again.
)";

} // namespace

std::vector<std::string> import_kinds() {
    std::vector<std::string> names;
    names.reserve(kinds.size());
    for (auto const& [name, text] : kinds) {
        names.emplace_back(name);
    }
    return names;
}

std::string import_help(std::string const& kind) {
    auto const one = std::find_if(kinds.begin(), kinds.end(),
                                  [&](auto const& known) { return known.first == kind; });
    bool const all = one == kinds.end();
    std::string text = "[mpirun -n RANKS] lockstep data import " + (all ? "KIND" : kind) +
                       " SOURCE OUT [options]\n\n";
    text += all ? "KIND\n" : "";
    for (auto const& [name, options] : kinds) {
        if (all || name == kind) {
            text += options;
        }
    }
    return text + common;
}

} // namespace lockstep::app
