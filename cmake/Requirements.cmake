# What must be there, found once, with a clear word when it is not.

find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Boost REQUIRED COMPONENTS program_options)
find_package(nlohmann_json REQUIRED)
find_package(PkgConfig REQUIRED)
include(CheckCXXSourceCompiles)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
# Where the library was built to choose by processor, it hashes two to three times as fast.
set(CMAKE_REQUIRED_LIBRARIES PkgConfig::XXHASH)
check_cxx_source_compiles("#include <xxhash.h>
                           #include <xxh_x86dispatch.h>
                           int main() { return XXH3_64bits_dispatch(\"\", 0) == 0; }"
                          LOCKSTEP_XXHASH_DISPATCHES)
unset(CMAKE_REQUIRED_LIBRARIES)
find_package(spdlog REQUIRED)
find_package(fmt REQUIRED)

# --- MPI, with threads
find_package(MPI COMPONENTS CXX)
if(NOT MPI_CXX_FOUND)
    message(FATAL_ERROR
            "MPI was not found. Install Open MPI or load its module; "
            "MPI_CXX_COMPILER names the compiler wrapper (mpicxx) to use.")
endif()
set(mpi_flavour "")
if("${MPI_CXX_INCLUDE_DIRS};${MPI_CXX_COMPILER_INCLUDE_DIRS}" MATCHES "mpich")
    set(mpi_flavour mpich)
elseif("${MPI_CXX_INCLUDE_DIRS};${MPI_CXX_COMPILER_INCLUDE_DIRS}" MATCHES "openmpi")
    set(mpi_flavour openmpi)
endif()

if(NOT DEFINED LOCKSTEP_MPI_THREADS)
    try_run(LOCKSTEP_MPI_THREADS LOCKSTEP_MPI_COMPILES
            ${PROJECT_BINARY_DIR}/probes ${PROJECT_SOURCE_DIR}/cmake/mpi_threads.cpp
            LINK_LIBRARIES MPI::MPI_CXX)
    if(NOT LOCKSTEP_MPI_COMPILES)
        message(FATAL_ERROR "A program with MPI_Init_thread does not compile and link with "
                            "${MPI_CXX_COMPILER}. Check that MPI installation.")
    endif()
endif()
if(LOCKSTEP_MPI_THREADS STREQUAL "64")
    message(FATAL_ERROR "This MPI (${MPI_CXX_COMPILER}) was built without thread support. "
                        "Lockstep needs at least MPI_THREAD_SERIALIZED; use another MPI.")
elseif(NOT LOCKSTEP_MPI_THREADS STREQUAL "0")
    message(STATUS "MPI programs cannot be started on this host; its threads are checked at run time")
endif()

# --- HDF5, parallel, of the same MPI
set(HDF5_PREFER_PARALLEL ON)
if(NOT HDF5_C_COMPILER_EXECUTABLE AND mpi_flavour)
    find_program(HDF5_C_COMPILER_EXECUTABLE NAMES h5pcc.${mpi_flavour} h5pcc)
endif()
find_package(HDF5 COMPONENTS C)
if(NOT HDF5_FOUND)
    message(FATAL_ERROR "HDF5 was not found. Install a parallel HDF5 for this MPI "
                        "(Debian: libhdf5-openmpi-dev), or set HDF5_ROOT.")
endif()
if(NOT HDF5_IS_PARALLEL)
    message(FATAL_ERROR "The HDF5 that was found (${HDF5_C_LIBRARIES}) is serial. "
                        "Checkpoints are written by all ranks: install a parallel HDF5 for this MPI "
                        "(Debian: libhdf5-openmpi-dev), or set HDF5_ROOT to one.")
endif()
if(NOT TARGET hdf5::hdf5)
    message(FATAL_ERROR "CMake's FindHDF5 made no target for ${HDF5_C_LIBRARIES}; set HDF5_ROOT.")
endif()

# --- decompression of chunks: zlib does it too, at half the speed
pkg_check_modules(codec_inflate QUIET IMPORTED_TARGET libdeflate)
if(codec_inflate_FOUND)
    add_library(lockstep::inflate ALIAS PkgConfig::codec_inflate)
else()
    message(STATUS "No libdeflate: zlib decompresses data sets")
endif()

# --- decoders of media, for importers: each is optional
foreach(codec "png libpng" "jpeg libturbojpeg" "sound sndfile"
        "video libavformat libavcodec libavutil libswscale" "pattern libpcre2-8")
    separate_arguments(codec)
    list(POP_FRONT codec name)
    if(LOCKSTEP_WITH_MEDIA)
        pkg_check_modules(codec_${name} QUIET IMPORTED_TARGET ${codec})
    endif()
    if(LOCKSTEP_WITH_MEDIA AND codec_${name}_FOUND)
        add_library(lockstep::${name} ALIAS PkgConfig::codec_${name})
    else()
        list(JOIN codec ", " libraries)
        message(STATUS "No ${libraries}: lockstep data import will not read ${name}")
    endif()
endforeach()

# --- signatures and encryption of federated training: optional
pkg_check_modules(sodium QUIET IMPORTED_TARGET libsodium)
if(sodium_FOUND)
    add_library(lockstep::sodium ALIAS PkgConfig::sodium)
else()
    message(STATUS "No libsodium: lockstep federate will not run")
endif()

# --- event files for TensorBoard: optional
# LibTorch has headers and a compiler of a protobuf of its own, without the library.
set(ignored ${CMAKE_IGNORE_PREFIX_PATH})
string(REPLACE ":" ";" prefixes "$ENV{CMAKE_PREFIX_PATH}")
foreach(prefix ${CMAKE_PREFIX_PATH} ${prefixes})
    if(EXISTS "${prefix}/lib/libtorch.so")
        list(APPEND CMAKE_IGNORE_PREFIX_PATH "${prefix}")
    endif()
endforeach()
find_package(Protobuf QUIET)
set(CMAKE_IGNORE_PREFIX_PATH ${ignored})
unset(ignored)
if(NOT TARGET protobuf::libprotobuf-lite OR NOT TARGET protobuf::protoc)
    message(STATUS "No protobuf: runs will write no event files for TensorBoard")
endif()

# --- LibTorch, and what speaks between GPUs
if(LOCKSTEP_WITH_TORCH)
    include(LibTorch)
endif()
if(LOCKSTEP_WITH_NCCL OR LOCKSTEP_WITH_RCCL)
    include(Nccl)
endif()
if(LOCKSTEP_WITH_ONECCL)
    include(OneCcl)
endif()

# --- everything of ours is compiled alike
add_library(lockstep_options INTERFACE)
target_compile_features(lockstep_options INTERFACE cxx_std_20)
target_include_directories(lockstep_options INTERFACE ${PROJECT_SOURCE_DIR}/include
                           ${PROJECT_SOURCE_DIR}/src)
# No contraction to fused multiply-add: it would make sums depend on the compiler.
target_compile_options(lockstep_options INTERFACE -Wall -Wextra -ffp-contract=off
                       $<$<BOOL:${LOCKSTEP_WARNINGS_AS_ERRORS}>:-Werror>)
# No path of this machine in the program, and one compiler cache for all checkouts.
target_compile_options(lockstep_options INTERFACE
                       $<BUILD_INTERFACE:-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=>)
# Where files are compiled as one, none of them is the main file that the warning takes it for.
if(CMAKE_UNITY_BUILD)
    target_compile_options(lockstep_options INTERFACE -Wno-subobject-linkage)
endif()
target_link_libraries(lockstep_options INTERFACE Threads::Threads)
set(LOCKSTEP_SANITIZE "" CACHE STRING "thread or address: build with that sanitizer")
if(LOCKSTEP_SANITIZE)
    target_compile_options(lockstep_options INTERFACE -fsanitize=${LOCKSTEP_SANITIZE}
                           -fno-omit-frame-pointer -g -O1 -fdebug-prefix-map=${PROJECT_SOURCE_DIR}/=)
    target_link_options(lockstep_options INTERFACE -fsanitize=${LOCKSTEP_SANITIZE})
endif()
