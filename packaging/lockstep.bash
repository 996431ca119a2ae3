# Completion of lockstep's commands, options, keys of decks, their values, and files, for bash.
_lockstep() {
    local line files="" word=${COMP_WORDS[COMP_CWORD]}
    COMPREPLY=()
    while IFS= read -r line; do
        if [[ $line == :files ]]; then
            files=1
        else
            COMPREPLY+=("${line%%$'\t'*}")
        fi
    done < <("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    if [[ $files ]]; then
        [[ $word == "=" ]] && word=""
        compopt -o filenames 2>/dev/null
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$word")
    fi
}
complete -F _lockstep lockstep
