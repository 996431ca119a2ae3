# Writes OUTPUT, a source file that tells the commit of the sources in SOURCE. It is written only if it
# changes: one small file is compiled after each commit.
find_program(GIT git)
set(text "commit unknown: the sources were in no git repository when the program was built")
if(NOT GIT)
    set(text "commit unknown: git was not found when the program was built")
else()
    # A repository around the sources is not theirs.
    execute_process(COMMAND ${GIT} -C ${SOURCE} rev-parse --show-prefix OUTPUT_VARIABLE prefix
                    RESULT_VARIABLE failure ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT failure AND prefix STREQUAL "")
        execute_process(COMMAND ${CMAKE_COMMAND} -E env GIT_OPTIONAL_LOCKS=0
                                ${GIT} -C ${SOURCE} describe --always --abbrev=12 "--dirty=, with changes"
                        OUTPUT_VARIABLE commit RESULT_VARIABLE failure ERROR_QUIET
                        OUTPUT_STRIP_TRAILING_WHITESPACE)
        if(NOT failure)
            set(text "commit ${commit}")
        endif()
    endif()
endif()
set(source "#include \"app/commit.hpp\"\n
namespace lockstep::app {\n
char const* commit_text() {\n    return \"${text}\";\n}\n
} // namespace lockstep::app\n")
set(before "")
if(EXISTS ${OUTPUT})
    file(READ ${OUTPUT} before)
endif()
if(NOT before STREQUAL source)
    file(WRITE ${OUTPUT} "${source}")
endif()
