# Completion of lockstep's commands, deck keys and files, for bash.
_lockstep() {
    local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]:-}
    local commands="train launch search plan check estimate evaluate predict generate verify-resume data checkpoint bench
                    federate report watch serve profile export models tasks --help --version"
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$word")
        return
    fi
    local second=""
    case $command in
    data) second="import info verify augment" ;;
    checkpoint) second="info verify diff prune export quantise" ;;
    federate) second="init join round info simulate" ;;
    export) second="check" ;;
    search) [[ ${COMP_WORDS[2]:-} == [rst]* ]] && second="report suggest tell" ;;
    bench) second="allreduce step loader checkpoint" ;;
    esac
    if ((COMP_CWORD == 2)) && [[ -n $second ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$second --help" -- "$word")
    elif ((COMP_CWORD == 3)) && [[ $command == data && ${COMP_WORDS[2]} == import ]]; then
        mapfile -t COMPREPLY < <(compgen -W "idx images video speech text series hdf5" -- "$word")
    elif [[ $word == --* ]]; then
        local keys help
        help=$("${COMP_WORDS[0]}" "$command" ${second:+"${COMP_WORDS[2]}"} --help 2>/dev/null)
        keys=$(grep -oE -- '--[a-z][a-z-]+' <<<"$help" | grep -vx -- --section)
        if [[ $help == *--section.key* ]]; then
            keys+=" $("${COMP_WORDS[0]}" train --help 2>/dev/null |
                sed -nE 's/^  ([a-z-]+\.[a-z0-9-]+) .*/--\1/p')"
        fi
        mapfile -t COMPREPLY < <(compgen -W "$keys --help" -- "$word")
    else
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
    fi
}
complete -F _lockstep lockstep
