# Completion of lockstep's commands, options, keys of decks, their values, and files, for fish.
function __lockstep_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program $words[1]
    set -e words[1]
    for line in ($program complete -- $words "$current" 2>/dev/null)
        if test "$line" = :files
            set -l option (string match -r '^--[^=]*=' -- "$current")
            set -l path (string replace -r '^--[^=]*=' '' -- "$current")
            set path (string replace -r '^~/' "$HOME/" -- "$path")
            for file in $path*
                test -d "$file"; and set file "$file"/
                echo "$option$file"
            end
        else
            echo $line
        end
    end
end
complete -c lockstep -f -a '(__lockstep_complete)'
