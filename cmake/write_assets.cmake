# Writes the files of the dashboard's page into a source: -DFOLDER=... -DOUTPUT=...
file(GLOB files "${FOLDER}/*")
list(SORT files)
set(arrays "")
set(rows "")
set(number 0)
foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME)
    get_filename_component(kind ${file} LAST_EXT)
    if(kind STREQUAL ".html")
        set(type "text/html; charset=utf-8")
    elseif(kind STREQUAL ".js")
        set(type "text/javascript; charset=utf-8")
    elseif(kind STREQUAL ".svg")
        set(type "image/svg+xml")
    elseif(kind STREQUAL ".css")
        set(type "text/css; charset=utf-8")
    else()
        message(FATAL_ERROR "${file}: of which type is it?")
    endif()
    set(path "/${name}")
    if(name STREQUAL "index.html")
        set(path "/")
    endif()
    file(READ ${file} hex HEX)
    string(LENGTH "${hex}" bytes)
    math(EXPR bytes "${bytes} / 2")
    string(REGEX REPLACE "(..)" "'\\\\x\\1'," hex "${hex}")
    string(APPEND arrays "constexpr char file_${number}[] = {${hex}};\n")
    string(APPEND rows "    {\"${path}\", \"${type}\", {file_${number}, ${bytes}}},\n")
    math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUTPUT} "// Written by cmake/write_assets.cmake.
#include \"serve/assets.hpp\"

namespace lockstep::serve {
namespace {
${arrays}
constexpr Asset assets[] = {
${rows}};
} // namespace

Asset const* asset_at(std::string_view path) {
    for (auto const& asset : assets) {
        if (asset.path == path) {
            return &asset;
        }
    }
    return nullptr;
}
} // namespace lockstep::serve
")
