#compdef lockstep
# Completion of lockstep's commands, options, keys of decks, their values, and files, for zsh.
_lockstep() {
    local line files=""
    local -a names shown
    while IFS= read -r line; do
        if [[ $line == :files ]]; then
            files=1
        else
            names+=("${line%%$'\t'*}")
            shown+=("${line/$'\t'/  -- }")
        fi
    done < <(${~words[1]} complete -- "${(@)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)
    (( $#names )) && compadd -l -d shown -- "${names[@]}"
    if [[ -n $files ]]; then
        [[ $PREFIX == --*=* ]] && compset -P '*='
        _files
    fi
}
if [[ $funcstack[1] == _lockstep ]]; then
    _lockstep "$@"
else
    compdef _lockstep lockstep
fi
